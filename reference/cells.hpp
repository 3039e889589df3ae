// SPDX-License-Identifier: Apache-2.0
// The equations of each cell for one sample and one time step, float64, shared by the oracle and
// the float64 reference on BLAS. A further cell is a row in cells.cpp.
#pragma once

#include <cstdint>

#include "rnntune/problem.hpp"

namespace rnntune::reference {

// What forward reads and writes: gates * H wide unless said.
struct CellForward {
  std::int64_t hidden;
  const double* from_x;    // W x + b_ih
  const double* from_h;    // R h' + b_hh
  const double* h_before;  // [O]
  const double* c_before;  // [H], null unless the cell has a c
  double* stash;           // [stash_rows * H], what backward needs again
  double* c;               // [H], null unless the cell has a c
  double* h;               // [H], before the projection
};

struct CellBackward {
  std::int64_t hidden;
  const double* stash;
  const double* h_before;
  const double* c_before;
  const double* c;
  const double* dh;  // [H], gradient of h before the projection, of both y and the next time step
  double* dc;        // [H], in: of c from the next time step; out: of c_before
  double* d_from_x;
  double* d_from_h;
  double* dh_before;  // [H], the part that does not pass through from_h
};

struct CellEquations {
  Cell cell;
  int stash_rows;
  bool has_c;
  void (*forward)(const CellForward&);
  void (*backward)(const CellBackward&);
};

// Null where the cell has no equations here yet.
const CellEquations* find_equations(Cell cell);

}  // namespace rnntune::reference
