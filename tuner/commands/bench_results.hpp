// SPDX-License-Identifier: Apache-2.0
// The results of `bench`, written by Google Benchmark's own JSON reporter, so that its compare.py
// reads them. Order, interleaving and stop rule are ours: it only gets finished samples.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "database/database.hpp"
#include "rnntune/rnn.hpp"
#include "tuner/contenders/contender.hpp"

namespace rnntune::tuner {

// Before the name of a GPU counter in a row of the results: "gpu_dram_read_bytes".
inline const std::string kGpuPrefix = "gpu_";

// One contender of one problem.
struct BenchRow {
  std::string problem_name;
  Problem problem;
  Contender contender;
  Timing timing;
  Summary ratio;     // its time over ours
  std::string rung;  // how our config was found: "exact", "given", ...; empty: not ours
  std::optional<StepCounters> counters = std::nullopt;
};

// peak_gflops: of the device's threads; 0 where unknown.
void write_results(std::ostream& out, const std::vector<BenchRow>& rows, const DeviceInfo& device,
                   const Environment& environment, double peak_gflops);

}  // namespace rnntune::tuner
