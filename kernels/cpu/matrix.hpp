// SPDX-License-Identifier: Apache-2.0
// A thread's part of a product through a BLAS.
#pragma once

#include "cpu/team.hpp"
#include "device/blas.hpp"
#include "device/matrix.hpp"

namespace rnntune::cpu {

// A rectangle of a matrix: what one thread computes.
struct Block {
  Range rows, cols;

  bool empty() const { return rows.size() <= 0 || cols.size() <= 0; }
};

// c[block] = a[rows, depth] * b[depth, cols] + beta * c[block].
inline void multiply(const Blas& blas, Block block, std::int64_t depth, ConstMatrix a,
                     ConstMatrix b, Matrix c, float beta) {
  if (block.empty()) return;
  blas.sgemm(product(block.rows.size(), block.cols.size(), depth, a.from(block.rows.begin, 0),
                     b.from(0, block.cols.begin), c.from(block.rows.begin, block.cols.begin),
                     beta));
}

}  // namespace rnntune::cpu
