// SPDX-License-Identifier: Apache-2.0
// A suite: a JSON list of problems, each citing where its shapes come from (docs/formats.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rnntune/problem.hpp"
#include "rnntune/result.hpp"

namespace rnntune::tuner {

struct SuiteProblem {
  std::string name;  // unique in its suite; a swept one is its base's name and values: "lm_G4"
  Problem problem;   // passed check()
  double weight = 1;
  std::string base;  // name of the entry that a sweep expanded; empty where nothing was swept
};

struct Suite {
  std::string name;
  std::string description;
  std::string source;
  std::vector<SuiteProblem> problems;  // never empty, in the order of the file
};

// Errors name the file, the entry and the field.
Result<Suite> load_suite(const std::string& path);
Result<Suite> parse_suite(std::string_view text, const std::string& path);

}  // namespace rnntune::tuner
