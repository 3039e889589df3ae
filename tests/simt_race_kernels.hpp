// SPDX-License-Identifier: Apache-2.0
// What the race checker must say of the kernels of simt_kernels.cuh.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rnntune/result.hpp"

namespace rnntune::simt {

struct RaceCase {
  const char* name;
  Status (*run)(std::uint64_t seed);
  std::vector<const char*> expected;  // parts of the report; empty: no race
  std::vector<const char*> lines;     // the marks of the lines that it names
};

std::span<const RaceCase> race_cases();

}  // namespace rnntune::simt
