// SPDX-License-Identifier: Apache-2.0
// The closed-form fixtures of tests/data/fixtures.json as problems with inputs and expected
// outputs.
#pragma once

#include <string>
#include <vector>

#include "reference/step.hpp"

namespace rnntune::reference {

struct WrongResult {
  std::string mistake;  // what a kernel does that gives these outputs
  std::vector<double> y, c_n;
};

struct Fixture {
  std::string id, purpose;
  Problem problem;
  Inputs inputs;  // dy, dh_n and dc_n are ones
  std::vector<double> y, c_n;
  std::vector<WrongResult> wrong;
  double tolerance;  // absolute

  // The first element of y or c_n further from the expected one than the tolerance; empty when
  // none.
  std::string difference(const std::vector<float>& out_y, const std::vector<float>& out_c_n) const;
};

std::vector<Fixture> read_fixtures(const std::string& path);

}  // namespace rnntune::reference
