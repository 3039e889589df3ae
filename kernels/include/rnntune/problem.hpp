// SPDX-License-Identifier: Apache-2.0
// A problem: the mathematics of a recurrent network and its size. How it is computed is a Config.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rnntune/export.h"
#include "rnntune/result.hpp"

namespace rnntune {

enum class Cell { lstm, lstm_peephole, lstm_coupled, gru, rnn_tanh, rnn_relu };
enum class Dtype { f32, f16, bf16, tf32 };
enum class Bias { two, one, none };  // two: bias_ih and bias_hh (default); one: bias_ih alone

// Dimensions follow the field: L layers, T time steps, B batch, I input, H hidden, P projection, D
// directions, G groups, R rank, N heads. T and B are capacities: a call may pass fewer time steps
// and samples.
struct RNNTUNE_EXPORT Problem {
  Cell cell = Cell::lstm;
  std::int64_t layers = 1;
  std::int64_t time = 1;
  std::int64_t batch = 1;
  std::int64_t input = 1;
  std::int64_t hidden = 1;
  std::int64_t projection = 0;  // 0: none; P = H is a real projection
  std::vector<std::int64_t> groups =
      {};                  // empty: 1; one value: every layer; L values: layer by layer
  std::int64_t rank = 0;   // 0: not factorised
  std::int64_t heads = 1;  // block-diagonal recurrence
  int directions = 1;
  bool skip = false;  // identity input, I = H
  bool variable_lengths = false;
  double dropout = 0;  // between layers, training only
  Bias bias = Bias::two;
  Dtype dtype = Dtype::f32;

  bool operator==(const Problem&) const = default;

  std::int64_t gates() const;                          // 4 LSTM, 3 GRU, 1 RNN (lstm_coupled: 3)
  std::int64_t output() const;                         // width of h: P, or H without projection
  std::int64_t layer_input(std::int64_t layer) const;  // I, then D * output()
  std::int64_t group_count(std::int64_t layer) const;
};

// Parses 'lstm:L2,T35,B20,I650,H650,f32'. L, D, G, N default to 1, dtype to f32, bias to two; T, B,
// I, H are required ('skip' gives I). Order after the cell is free; a part given twice is an error.
RNNTUNE_EXPORT Result<Problem> parse_problem(std::string_view text);

// The canonical form; parse_problem(to_string(p)) == p.
RNNTUNE_EXPORT std::string to_string(const Problem& problem);
RNNTUNE_EXPORT const char* to_string(Cell cell);
RNNTUNE_EXPORT const char* to_string(Dtype dtype);

// Checks every field, and that all tensor sizes of the problem fit 63 bits.
RNNTUNE_EXPORT Status check(const Problem& problem);

// One training step in FLOPs, 1 MAC = 2 FLOP, GEMM work only: forward, plus as much again for each
// of backward data and backward weights (docs: facts of every entry are quoted with this count).
// Forward of a layer and direction: 2 * gates * H * (I + output) * T * B, plus 2 * H * P * T * B
// when projected.
RNNTUNE_EXPORT double step_flops(const Problem& problem);

// Number of trainable parameters, biases included.
RNNTUNE_EXPORT std::int64_t parameter_count(const Problem& problem);

// Element counts of the tensors of a problem (T, B at capacity); sizes that never overflow once
// check() passed.
struct TensorCounts {
  std::int64_t x;  // [T,B,I]
  std::int64_t y;  // [T,B,D*output]
  std::int64_t h;  // [L*D,B,output]
  std::int64_t c;  // [L*D,B,H], 0 unless LSTM
};
RNNTUNE_EXPORT TensorCounts tensor_counts(const Problem& problem);

}  // namespace rnntune
