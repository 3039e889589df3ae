// SPDX-License-Identifier: Apache-2.0
// One training step on the host: its seeded inputs, and the float64 results that candidates are
// judged by.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rnntune/problem.hpp"
#include "rnntune/rnn.hpp"

namespace rnntune::reference {

// Weights or gradients of one layer and direction; shapes as in rnntune/rnn.hpp, empty where the
// problem has none.
template <class T>
struct LayerTensors {
  std::vector<T> weight_ih, weight_hh, bias_ih, bias_hh, weight_hr;
};

// Everything a training step reads. The sizes are those of the problem (T and B at capacity).
struct Inputs {
  std::vector<float> x, h_0, c_0, dy, dh_n, dc_n;
  std::vector<LayerTensors<float>> weights;  // index layer * D + direction
};

// Everything a training step writes. gradients start from zero.
template <class T>
struct Outputs {
  std::vector<T> y, h_n, c_n, dx, dh_0, dc_0;
  std::vector<LayerTensors<T>> gradients;
};

// Seeded, never zero, never subnormal; weights scaled so that the recurrence is contractive (gain <
// 1) and gates stay away from saturation. The same seed gives the same bits on every machine.
Inputs make_inputs(const Problem& problem, std::uint64_t seed);

// Why there is no reference for a problem; empty when there is. The steps below throw
// std::invalid_argument with this sentence.
std::string reference_why_not(const Problem& problem);

// Float64, scalar, one loop nest per equation; the equations are in oracle.cpp. O(step_flops)
// without any blocking.
Outputs<double> oracle_step(const Problem& problem, const Inputs& inputs);

// The same in float64 on BLAS, for full sizes.
Outputs<double> blas64_step(const Problem& problem, const Inputs& inputs);

// oracle_step where the problem is small, else blas64_step.
Outputs<double> reference_step(const Problem& problem, const Inputs& inputs);
const char* reference_name(const Problem& problem);  // of the one taken: "oracle", "blas64"

std::vector<LayerWeights> weight_pointers(const Inputs& inputs);

// Calls visit(name, member of a, member of b) for every output tensor present: "y", "h_n", "dx",
// "dW_ih[0]", ...
template <class A, class B, class Visit>
void each_output(A& a, B& b, Visit visit);

}  // namespace rnntune::reference

#include "step-inl.hpp"
