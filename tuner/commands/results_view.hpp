// SPDX-License-Identifier: Apache-2.0
// Results of `rnntune bench` (Google Benchmark JSON, docs/formats.md), read back for a report.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rnntune/result.hpp"
#include "tuner/records/record.hpp"

namespace rnntune::tuner {

// One contender on one problem, from its repetitions.
struct ResultRow {
  std::string name;       // the suite's name for the problem
  std::string contender;  // "rnntune", "unfused", "onednn"
  std::string problem;
  std::string config;
  std::string version;  // of rnntune
  std::string algorithm;
  std::string error;  // empty: it ran
  TimeUs time_us;     // low, high NaN for fewer than six repetitions
  std::optional<Ratio> ratio;
  std::optional<StepCounters> counters = std::nullopt;
};

struct ResultsView {
  std::string date;
  std::string version;  // of rnntune
  Environment environment;
  DeviceInfo device;
  std::vector<ResultRow> rows;
};

Result<ResultsView> read_results(const std::string& path);
Result<ResultsView> parse_results(std::string_view text, const std::string& path);

}  // namespace rnntune::tuner
