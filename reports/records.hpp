// SPDX-License-Identifier: Apache-2.0
// What a report shows, in neutral terms: the tuner's commands fill these records from journals,
// databases and bench results, and every writer prints the same ones. What is unknown stays empty.
// Times are microseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rnntune::reports {

// A median and its 95% interval, of times or of ratios.
struct Interval {
  double median = 0;
  double low = 0;
  double high = 0;
};

// A step time that a report may show or compute with: positive, finite and no shorter than a
// nanosecond, no longer than two weeks. Anything else in a file is printed as "invalid".
bool is_valid_time(double time_us);
bool is_valid(const Interval& time_us);

struct Opponent {
  std::string name;     // "unfused", "onednn"
  std::string version;  // of rnntune
  std::string algorithm;
  std::optional<Interval> time_us;
  std::optional<Interval> ratio;  // opponent's time over ours, above 1 is a win
};

struct Validation {
  std::string reference;
  double error = 0;  // of the tensor closest to its bound
  double bound = 0;
  std::string tensor;
};

// One evaluated config.
struct Attempt {
  std::string config;
  std::string variant;
  std::vector<std::pair<std::string, std::string>> params;
  std::string outcome;  // "ok", "wrong_result", ...
  std::string reason;
  std::optional<Interval> time_us;
  bool repeatable = true;
};

// The least time that the machine allows a step, and what limits it.
struct Roofline {
  double bound_us = 0;
  double intensity = 0;  // FLOP per byte moved
  std::string limit;     // "compute" or "bandwidth"
};

// Hardware counters of a GPU over one step.
struct GpuCounters {
  std::string contender;  // whose step: "rnntune", "cudnn"
  std::string chip;
  std::optional<double> dram_read_bytes, dram_write_bytes, l2_bytes;
  std::optional<double> dram_throughput, tensor_pipe, fma_pipe;  // fractions of the peak
  std::optional<double> occupancy;                     // fraction of the warps there may be
  std::vector<std::pair<std::string, double>> stalls;  // why warps wait: share of their time,
                                                       // largest first
};

struct ProblemReport {
  std::string name;
  std::string problem;  // problem string
  std::string config;   // the best one; empty where none was found
  std::string variant;
  int threads = 0;  // 0: unknown
  std::optional<Interval> time_us;
  std::int64_t samples = 0;
  std::string stop;  // why timing ended: "converged", "budget"
  std::optional<double> gflops;
  std::optional<double> fraction_of_peak;
  std::optional<double> fraction_of_roofline;
  std::optional<Roofline> roofline;
  std::vector<Opponent> against;
  std::optional<Validation> validation;
  std::optional<std::int64_t> workspace_bytes;
  std::optional<std::int64_t> reserve_bytes;
  std::optional<std::int64_t> packed_bytes;
  std::vector<GpuCounters> counters;
  std::vector<std::string> tied;  // configs that cannot be told apart from the best
  std::vector<Attempt> attempts;
  std::int64_t evaluations = 0;
  std::int64_t space = 0;  // number of configs there are; 0: unknown
  bool complete = false;
  std::string command;  // repeats this row
};

struct Bandwidth {
  std::int64_t working_set_bytes = 0;  // per thread
  double gbytes_per_s = 0;             // all threads together
};

struct MachineLimits {
  int threads = 1;
  double peak_gflops = 0;
  std::vector<Bandwidth> read_bandwidth;
};

struct Report {
  std::string title;
  std::string time;     // when the data was measured
  std::string device;   // product name
  std::string version;  // of rnntune
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<MachineLimits> limits;
  std::vector<ProblemReport> problems;
  std::vector<std::string> notes;    // what a reader must know before trusting a figure
  std::vector<std::string> sources;  // files that this report was made from
};

}  // namespace rnntune::reports
