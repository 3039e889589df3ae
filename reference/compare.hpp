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

struct TensorCheck {
  std::string tensor;  // "dW_hh[1]"
  double error = 0;    // max|out - ref| / rms(ref); infinity for NaN
  double bound = 0;
  std::int64_t worst = 0;  // flat index of the worst element
  double value = 0;        // what was there, and what should have been
  double expected = 0;
  bool ok = false;
  std::string
      reason;  // when not ok: "error above bound", "not finite", "mostly zero", "never written"
};

// The bound for one output tensor of a problem, in the form that benchdnn uses; derivation in
// compare.cpp.
double error_bound(const Problem& problem, std::string_view tensor);

TensorCheck check_tensor(std::string_view tensor, std::span<const float> out,
                         std::span<const double> ref, double bound);

// All outputs of a step. The worst (largest error / bound) first.
std::vector<TensorCheck> check_outputs(const Problem& problem, const Outputs<float>& out,
                                       const Outputs<double>& ref);

}  // namespace rnntune::reference
