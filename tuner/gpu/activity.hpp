// SPDX-License-Identifier: Apache-2.0
// What ran on a GPU during a sample, and when, as the GPU's own records say: the time of a step
// without what the host adds, and where in the step it goes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rnntune/result.hpp"

namespace rnntune::tuner {

struct Activity {
  enum class Kind { kernel, copy, fill, graph };
  Kind kind = Kind::kernel;
  std::string name;            // of a kernel, mangled; else "copy", "fill", "graph"
  std::uint64_t start_ns = 0;  // on the GPU's clock
  std::uint64_t end_ns = 0;
  std::uint32_t stream = 0;
  std::string phase;  // that was entered when it was launched; empty: none
};

// In the order of their start.
using Activities = std::vector<Activity>;

// From the first start to the last end, gaps included: the time of what was queued.
double span_us(const Activities& activities);
// The part of the span in which something ran; what overlaps on several streams counts once.
double busy_us(const Activities& activities);

// The time of activities that share a name, overlaps counted twice.
struct Share {
  std::string name;
  int count = 0;
  double total_us = 0;
};
std::vector<Share> by_kernel(const Activities& activities);  // slowest first
std::vector<Share> by_phase(const Activities& activities);   // in order of their first start

// How CUDA graphs are recorded: as a whole, which costs least and is what a time is taken from, or
// kernel by kernel.
enum class GraphDetail { whole, kernels };

// Collects the records of one sample at a time.
class ActivityTrace {
 public:
  virtual ~ActivityTrace() = default;

  // What this thread launches until end() is of the sample. Nothing is queued on the device.
  virtual Status begin() = 0;
  // All that was queued has completed. An error says why the records cannot be trusted: some were
  // dropped, came late, have no time, or are of launches that are not the sample's.
  virtual Result<Activities> end() = 0;

  // What this thread launches until leave() is of this phase; phases do not nest.
  virtual Status enter(const std::string& phase) = 0;
  virtual Status leave() = 0;
};

// Work on the device, complete on return.
using Probe = std::function<Status()>;

// Records by CUPTI, opened from the loader's path or `folders`. A CUDA device must be open: without
// an initialised driver CUPTI crashes. At most one trace is open at a time. Whether records really
// come is found out with `probe`; the error says in one line what is missing or not permitted.
Result<std::unique_ptr<ActivityTrace>> open_activity_trace(std::span<const std::string> folders,
                                                           GraphDetail detail, const Probe& probe);

}  // namespace rnntune::tuner
