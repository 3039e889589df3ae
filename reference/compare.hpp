// SPDX-License-Identifier: Apache-2.0
// Judging a tensor: error = max|out - ref| / rms(ref) against a bound computed from dtype,
// accumulation length and T.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/step.hpp"

namespace rnntune::reference {

// Outputs are filled with this byte before a candidate runs: every float of it is a NaN of one bit
// pattern, so an element that was never written is told from one that was computed wrong.
constexpr unsigned char kPoisonByte = 0xff;

struct TensorCheck {
  std::string tensor;  // "dW_hh[1]"
  // max|out - ref| / rms(ref), or max|out| where ref is all zero; infinity for NaN and Inf
  double error = 0;
  double bound = 0;
  std::int64_t worst = 0;  // flat index of the worst element
  double value = 0;        // what was there, and what should have been
  double expected = 0;
  bool ok = false;
  // When not ok: "error above bound", "not finite", "mostly zero", "never written", "wrong size",
  // "reference not finite".
  std::string reason;
};

// The bound for one output tensor of a problem ("y", "dW_hh[1]"), in the form that benchdnn uses;
// derivation in compare.cpp.
double error_bound(const Problem& problem, std::string_view tensor);

TensorCheck check_tensor(std::string_view tensor, std::span<const float> out,
                         std::span<const double> ref, double bound);

// All outputs of a step. Failures first, then the worst (largest error / bound).
std::vector<TensorCheck> check_outputs(const Problem& problem, const Outputs<float>& out,
                                       const Outputs<double>& ref);

}  // namespace rnntune::reference
