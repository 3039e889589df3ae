// SPDX-License-Identifier: Apache-2.0
// The kernels of the `cell` variant in layout [T,B,H], one table per instruction set. With V =
// lanes of a vector:
//
//   unit block   V hidden units; all four gates of a block lie side by side: [4][V], i f g o. H is
//   padded to whole blocks
//                with zero weights, so padded units stay 0 and add nothing.
//   gates        [blocks][T*B][4][V]; backward overwrites each row with the gradients of the
//   pre-activations c, tanh_c    [blocks][rows][V] panel        up to four vectors of output
//   columns of a backward GEMM; its weights are [blocks*4*V][vectors*V]
#pragma once

#include <cstdint>
#include <string_view>

#include "cpu/cell_common.hpp"

namespace rnntune::cpu {

// A row-major operand [rows, depth] and the packed weights [depth][4][V] that it meets.
struct Term {
  const float* a = nullptr;
  std::int64_t lda = 0;
  const float* w = nullptr;
  std::int64_t depth = 0;
};

// pre[rows, 4, V] = x term + h term + start, then the LSTM cell on it. One unit block; rows of one
// time step or of many.
struct ForwardPanel {
  Term x, h;
  const float* bias = nullptr;      // [4][V] to start from; null: start from what gates holds
  float* gates = nullptr;           // [rows][4][V]
  const float* c_before = nullptr;  // [rows][V]; may be c
  float* c = nullptr;
  float* tanh_c = nullptr;
  float* y = nullptr;  // [rows, ldy], the block's first column
  std::int64_t ldy = 0;
  std::int64_t units = 0;  // of the block's V units, those that exist
  std::int64_t rows = 0;
  int tile_rows = 0;  // register tile, 0: the largest
  Epilogue epilogue = Epilogue::none;
  Ahead ahead;
};

// The pointwise backward of the unit blocks of a panel, at one time step. Strides are from block to
// block.
struct BackwardCell {
  float* gates = nullptr;  // [rows][4][V] of the panel's first block
  std::int64_t gates_stride = 0;
  const float* c_before = nullptr;
  const float* tanh_c = nullptr;
  std::int64_t c_stride = 0, tanh_c_stride = 0;
  float* dc = nullptr;  // [rows][V], in and out
  std::int64_t dc_stride = 0;
  const float* dy = nullptr;  // [rows, ldy]
  std::int64_t ldy = 0;
  const float* dh = nullptr;  // more gradient of h, [rows, ldh]; null: none
  std::int64_t ldh = 0;
  float* dbias = nullptr;  // [blocks][4][V], added to
};

// acc[rows, vectors*V] = dgates[rows, blocks*4*V] * w, then either out = acc, or the cell with dh =
// acc + dy + cell.dh.
struct BackwardPanel {
  const float* dgates = nullptr;  // [rows][4][V] of block 0
  std::int64_t block_stride = 0;
  std::int64_t blocks = 0;      // 0: acc is 0
  std::int64_t last_units = 0;  // of the last block's V units, those that exist
  const float* w = nullptr;
  int vectors = 1;
  std::int64_t rows = 0;
  int tile_rows = 0;
  std::int64_t columns = 0;  // valid columns of the panel
  float* out = nullptr;      // [rows, ldo]; null: run the cell
  std::int64_t ldo = 0;
  BackwardCell cell;
  Ahead ahead;
};

// dw[units, columns] += sum over rows of dgates[row][unit] * packed[row][column]; one gate of one
// block.
struct WeightsTile {
  const float* dgates = nullptr;  // the gate's first unit; rows are 4*V apart
  std::int64_t rows = 0;
  const float* packed = nullptr;  // one panel of activations [rows][vectors*V]
  int vectors = 1;
  std::int64_t columns = 0;
  std::int64_t units = 0;
  float* dw = nullptr;
  std::int64_t ldw = 0;
};

// The same for few columns: a register tile of columns x all four gates of a block. dw is the
// block's first unit of gate i, gate_stride floats before that of gate f.
struct WeightsNarrow {
  const float* dgates = nullptr;
  std::int64_t rows = 0;
  const float* a = nullptr;  // activations [rows, lda]
  std::int64_t lda = 0;
  std::int64_t columns = 0;
  std::int64_t units = 0;
  float* dw = nullptr;
  std::int64_t ldw = 0, gate_stride = 0;
};

// packed[k][gate][V] = w[gate * H + unit][k] for the units of one block.
struct PackBlock {
  const float* w = nullptr;  // the block's first unit of gate i; gates are gate_stride apart
  std::int64_t gate_stride = 0;
  std::int64_t depth = 0;  // columns of w, and its row stride
  std::int64_t units = 0;
  float* packed = nullptr;
};

struct CellKernels {
  std::int64_t lanes;
  int tile_rows;              // largest register tile of the forward panel
  int backward_tile_rows[5];  // by number of vectors, 1 to 4
  void (*forward)(const ForwardPanel&);
  void (*backward)(const BackwardPanel&);
  void (*weights)(const WeightsTile&);
  void (*weights_narrow)(const WeightsNarrow&);
  void (*pack)(const PackBlock&);
};

// isa: DeviceInfo::isa.front(), the best one allowed.
CellKernels cell_kernels(std::string_view isa);

}  // namespace rnntune::cpu
