// SPDX-License-Identifier: Apache-2.0
// The oracle's core on float64 inputs, so that finite differences can prove it.
#pragma once

#include <string>
#include <vector>

#include "reference/step.hpp"

namespace rnntune::reference {

struct DoubleInputs {
  std::vector<double> x, h_0, c_0, dy, dh_n, dc_n;
  std::vector<LayerTensors<double>> weights;
};

DoubleInputs widen(const Inputs& inputs);

// Throws std::invalid_argument with reference_why_not's sentence where the problem has none.
Outputs<double> oracle_step(const Problem& problem, const DoubleInputs& inputs);

}  // namespace rnntune::reference
