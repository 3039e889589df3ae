// SPDX-License-Identifier: Apache-2.0
// The GPU counters of contenders' steps: counted after all timing of a problem, kept in journal and
// results, shown in reports.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "database/codec.hpp"
#include "reports/records.hpp"
#include "rnntune/device.hpp"
#include "tuner/gpu/counters.hpp"
#include "tuner/measure/measure.hpp"

namespace rnntune::tuner {

// Of one step, as records keep them.
struct StepCounters {
  std::string contender;  // "rnntune", "cudnn"
  std::string chip;       // "GH100"
  std::int64_t passes = 0;
  std::vector<std::pair<std::string, double>> values;  // by Counter::name; finite

  bool operator==(const StepCounters&) const = default;
};

Json to_json(const StepCounters& counters);
// Why the JSON is none, or an empty string. A value that is no number is left out.
std::string from_json(const Json& json, StepCounters& counters);

reports::GpuCounters to_report(const StepCounters& counters);

struct CountedStep {
  std::string contender;
  Step step;
};

// Counts as long as that is permitted: the first refusal is told once, and nothing is asked again.
class StepCounting {
 public:
  using Count = std::function<Result<CounterReport>(const Probe& step)>;

  // count: null where there is nothing to count with and nothing to say. `device` completes steps;
  // `clock` lends its profiler.
  StepCounting(Count count, std::shared_ptr<Device> device, std::shared_ptr<Clock> clock)
      : count_(std::move(count)), device_(std::move(device)), clock_(std::move(clock)) {}

  // No sample is open. Ends early when interrupted.
  std::vector<StepCounters> count(std::span<const CountedStep> steps);
  // "no GPU counters: why", when first asked after a refusal; empty: nothing.
  std::string news() { return std::exchange(news_, {}); }

 private:
  std::optional<StepCounters> count(const CountedStep& counted);

  Count count_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<Clock> clock_;
  std::string news_;
};

// By CUPTI on a CUDA device, unless `wanted` is false; on any other device nothing.
StepCounting open_counting(std::shared_ptr<Device> device, std::shared_ptr<Clock> clock,
                           bool wanted);

}  // namespace rnntune::tuner
