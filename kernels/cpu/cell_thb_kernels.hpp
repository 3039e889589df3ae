// SPDX-License-Identifier: Apache-2.0
// The kernels of the `cell` variant in layout [T,H,B], one table per instruction set. With V =
// lanes of a vector, a lane is a sample:
//
//   panel       1 to 4 vectors of samples, W lanes wide. B is padded to whole vectors; what padded
//               lanes hold reaches no other lane and is never handed out.
//   array       of R rows at one time step: [panels][R][W], so a panel's rows are contiguous.
//   gates       rows are unit * 4 + gate, i f g o; backward overwrites them with the gradients of
//               the pre-activations.
//   c, tanh_c, h, dc, dy   rows are units, x: inputs
//   unit panel  the rows of a register tile, whose weights are packed as [depth][rows].
#pragma once

#include <cstdint>
#include <string_view>

#include "cpu/cell_common.hpp"

namespace rnntune::cpu {

// Weights [depth][rows] and the panel [depth][W] that they meet.
struct ThbTerm {
  const float* w = nullptr;
  const float* b = nullptr;
  std::int64_t depth = 0;
};

// pre[units * 4][W] = x term + h term + start, then the LSTM cell on it: one register tile.
struct ThbForward {
  ThbTerm x, h;
  const float* bias = nullptr;      // [units * 4] to start from; null: start from what gates holds
  float* gates = nullptr;           // [units * 4][W]
  const float* c_before = nullptr;  // [units][W]; may be c
  float* c = nullptr;
  float* tanh_c = nullptr;
  float* h_out = nullptr;
  int units = 0;
  int vectors = 0;
  Epilogue epilogue = Epilogue::none;
  Ahead ahead;
};

// out[units][W] = w^T dgates + start. Without `out` it is dh but for dy, and the cell runs
// backwards on it.
struct ThbBackward {
  const float* w = nullptr;       // [depth][units]
  const float* dgates = nullptr;  // [depth][W]
  std::int64_t depth = 0;
  const float* start = nullptr;  // [units][W]; null: zeros
  int units = 0;
  int vectors = 0;
  float* out = nullptr;
  float* gates = nullptr;  // [units * 4][W], in and out; below: [units][W]
  const float* c_before = nullptr;
  const float* tanh_c = nullptr;
  float* dc = nullptr;  // in and out
  const float* dy = nullptr;
  Ahead ahead;
};

// Gradients of pre-activations at one time step, in one panel.
struct ThbSegment {
  const float* dgates = nullptr;  // [4 * H][width]
  std::int64_t width = 0;
  std::int64_t samples = 0;  // lanes that exist
};

// Rows [first, first + count) of dw[row][columns] += sum over segments and samples of
// dgates[row][sample] * packed[sample][column].
struct ThbWeights {
  const ThbSegment* segments = nullptr;
  int segment_count = 0;
  std::int64_t first = 0, count = 0;
  const float* packed = nullptr;  // one panel of activations [samples of all segments][vectors*V]
  int vectors = 1;
  std::int64_t columns = 0;
  float* dw = nullptr;  // the panel's first column
  std::int64_t ldw = 0;
  std::int64_t hidden = 0;
};

// The same rows summed over samples, added to bias_ih and, where it is not null, bias_hh.
struct ThbBias {
  const ThbSegment* segments = nullptr;
  int segment_count = 0;
  std::int64_t first = 0, count = 0;
  float* bias_ih = nullptr;
  float* bias_hh = nullptr;
  std::int64_t hidden = 0;
};

// w [4 * H, depth], rows in the caller's order gate * H + unit.
struct ThbWeightMatrix {
  const float* w = nullptr;
  std::int64_t hidden = 0;
  std::int64_t depth = 0;
};

// packed[k][unit * 4 + gate] = w[gate * H + first + unit][k] for the units of one forward tile.
struct ThbPackForward {
  ThbWeightMatrix matrix;
  std::int64_t first = 0, units = 0;
  float* packed = nullptr;
};

// Columns of w in panels: packed[panel][unit * 4 + gate][column] = w[gate * H + unit][panel's first
// + column], for rows of units [first, last).
struct ThbPackBackward {
  ThbWeightMatrix matrix;
  std::int64_t first = 0, last = 0;
  Panels panels;
  float* packed = nullptr;
};

// to[column * to_stride + row] = from[row * from_stride + column]; zeros for rows in
// [rows, padded), and everywhere if from is null.
struct ThbTranspose {
  const float* from = nullptr;
  std::int64_t from_stride = 0;
  std::int64_t rows = 0, columns = 0;
  float* to = nullptr;
  std::int64_t to_stride = 0;
  std::int64_t padded = 0;
};

struct CellThbKernels {
  std::int64_t lanes;
  int forward_units[5];  // of a register tile by its vectors, 1 to 4; 0: too few registers
  int backward_units[5];
  void (*forward)(const ThbForward&);
  void (*backward)(const ThbBackward&);
  void (*weights)(const ThbWeights&);
  void (*bias)(const ThbBias&);
  void (*pack_forward)(const ThbPackForward&);
  void (*pack_backward)(const ThbPackBackward&);
  void (*transpose)(const ThbTranspose&);
};

// isa: DeviceInfo::isa.front(), the best one allowed.
CellThbKernels cell_thb_kernels(std::string_view isa);

}  // namespace rnntune::cpu
