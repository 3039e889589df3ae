// SPDX-License-Identifier: Apache-2.0
// A record: one attempt on one config with its outcome, as the journal keeps it (docs/formats.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "database/codec.hpp"
#include "database/database.hpp"
#include "tuner/gpu/step_counters.hpp"
#include "tuner/measure/measure.hpp"
#include "tuner/measure/statistics.hpp"

namespace rnntune::tuner {

enum class Outcome {
  ok,
  rejected,        // by the space
  build_failed,    // the plan could not be made
  resource_limit,  // it needs more memory than there is, or a kernel more of a multiprocessor
  launch_failed,   // a call reported a failure
  timed_out,
  crashed,       // it was in flight when the process died, twice
  wrong_result,  // the reason names tensor and element
  untrusted,     // a mostly zero output, or a time below the roofline
};
const char* to_string(Outcome outcome);
std::optional<Outcome> parse_outcome(std::string_view text);

// Identifies an evaluation on a device: another text of the kernels makes it another one.
struct Attempt {
  std::string problem;
  Config config;
  std::string kernel_hash;
};

struct Record {
  Attempt attempt;
  Outcome outcome = Outcome::ok;
  std::string reason;
  bool repeatable = true;
  std::optional<TimeUs> time_us;  // low = high = NaN where the samples are too few for an interval
  std::int64_t workspace_bytes = 0;
  std::int64_t reserve_bytes = 0;
  std::int64_t packed_bytes = 0;
  std::optional<Validation> validation;
  double prepare_us = 0;  // what the evaluation cost
  double validate_us = 0;
  double measure_us = 0;

  std::int64_t memory_bytes() const { return workspace_bytes + reserve_bytes; }
};

// The winner of a problem, from the interleaved run of the finalists.
struct Final {
  std::string problem;
  Config config;
  TimeUs time_us;
  std::vector<Config> tied;
  std::vector<Against> against;
  std::vector<StepCounters> counters;  // of the winner as "rnntune", and of opponents
  // By opponent: what else it tried, and why its other ways, or all of them, cannot take part.
  std::vector<std::pair<std::string, std::vector<std::string>>> notes;
  std::int64_t evaluations = 0;
  std::int64_t space = 0;
  bool complete = false;
};

TimeUs to_time_us(const Summary& summary, const char* stop = "");
TimeUs to_time_us(const Timing& timing);

Json to_json(const Attempt& attempt);  // of type "start"
Json to_json(const Record& record);
Json to_json(const Final& final);

// Why the JSON is no such record, or an empty string.
std::string from_json(const Json& json, Attempt& attempt);
std::string from_json(const Json& json, Record& record);
std::string from_json(const Json& json, Final& final);

}  // namespace rnntune::tuner
