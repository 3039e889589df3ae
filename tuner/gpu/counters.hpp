// SPDX-License-Identifier: Apache-2.0
// Hardware counters of a GPU over one step: what limits it. Counting runs the step once for each
// pass and at other clocks than usual, so it is for finalists, apart from all timing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tuner/gpu/activity.hpp"

namespace rnntune::tuner {

struct Counter {
  const char* name;  // in records: unit last
  // The metrics that give it, by CUPTI's names; chips differ, the first that a chip has is taken.
  std::vector<const char*> metrics;
};

// All that is counted: time, memory traffic, occupancy, pipes, and why warps wait.
const std::vector<Counter>& counters();

struct CounterValue {
  std::string name;    // Counter::name
  std::string metric;  // that gave it
  double value = 0;
};

struct CounterReport {
  std::string chip;        // "GH100"
  std::size_t passes = 0;  // times that the step ran
  std::vector<CounterValue> values;
  std::vector<std::string> absent;  // counters that this chip does not have
};

// Counts over `step`, complete on return, on the CUDA device of this ordinal, which must be open.
// No ActivityTrace may be open. The library is searched for on the loader's path and in `folders`;
// the error says in one line what is missing or not permitted.
Result<CounterReport> count_step(int ordinal, std::span<const std::string> folders,
                                 const Probe& step);

}  // namespace rnntune::tuner
