// SPDX-License-Identifier: Apache-2.0
#include "tuner/evaluate.hpp"

#include "device/gpu.hpp"
#include "reports/format.hpp"

namespace rnntune::tuner {
namespace {

constexpr double kPeakMargin = 1.05;
constexpr const char* kTimedOut = "longer than --timeout";

// The step, failing once the deadline has passed.
Step until(double deadline_us, const Step& step) {
  return [deadline_us, step]() -> Status {
    if (steady_clock().now_us() > deadline_us) return Error{ErrorCode::internal, kTimedOut};
    return step();
  };
}

void judge_time(Record& record, const Result<Timing>& timing, double floor_us) {
  if (!timing.ok()) {
    const bool late = timing.error().message == kTimedOut;
    record.outcome = late ? Outcome::timed_out : Outcome::launch_failed;
    record.reason = timing.error().message;
    return;
  }
  record.time_us = to_time_us(*timing);
  if (timing->summary.median >= floor_us) return;
  record.outcome = Outcome::untrusted;
  record.reason = reports::format_time(timing->summary.median) +
                  " is below the roofline: " + reports::format_time(floor_us) + " at the peak";
}

}  // namespace

Record evaluate(const Setting& setting, const Attempt& attempt, const EvaluatePolicy& policy) {
  Record record;
  record.attempt = attempt;
  const double deadline = steady_clock().now_us() + policy.timeout_us;
  const std::optional<Contender> contender = prepare(setting, attempt.config, record);
  if (!contender) return record;
  const double start = steady_clock().now_us();
  const Step step = until(deadline, contender->step);
  judge_time(record, measure(step, policy.measure, setting.clock()), policy.floor_us);
  record.measure_us = steady_clock().now_us() - start;
  return record;
}

double roofline_floor_us(const Problem& problem, const MachineLimits& limits, int threads) {
  const double peak = limits.peak_gflops(threads);
  return peak > 0 ? step_flops(problem) / (kPeakMargin * peak * 1e3) : 0;
}

std::string repro_command(const Setting& setting, const Config& config) {
  const DeviceInfo& info = setting.device->info();
  std::string command = "rnntune verify --problem " + to_string(setting.problem()) + " --config '" +
                        to_string(config) + "' --seed " + std::to_string(setting.which->seed) +
                        " --threads " + std::to_string(info.threads);
  if (info.backend != "cpu") command += " --device " + info.backend;
  if (info.backend == "cuda") command += ":" + std::to_string(gpu::gpu(*setting.device).ordinal());
  if (!info.isa.empty()) command += " --isa " + info.isa.front();
  return command;
}

}  // namespace rnntune::tuner
