// SPDX-License-Identifier: Apache-2.0
#include "tuner/contenders/evaluate.hpp"

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

// A clock that no CPU sold reaches.
constexpr double kMostGhz = 7;

struct FlopsPerCycle {
  const char* isa;  // the name begins so
  double flops;     // of a core: two units of two FLOPs a lane; four units of 128 bits on Arm
};
constexpr FlopsPerCycle kFlopsPerCycle[] = {
    {"avx2", 32}, {"sse4", 16}, {"ssse3", 16}, {"neon", 32}};
constexpr double kMostFlopsPerCycle = 64;  // AVX-512, SVE, and what is not known

void judge_time(Record& record, const Result<Timing>& timing) {
  if (timing.ok()) {
    record.time_us = to_time_us(*timing);
    return;
  }
  const bool late = timing.error().message == kTimedOut;
  record.outcome = late ? Outcome::timed_out : Outcome::launch_failed;
  record.reason = timing.error().message;
}

// What a time below the roofline proves: that the roofline was measured too low, unless the step
// did not do its work.
void doubt_time(Record& record, const Contender& contender, const EvaluatePolicy& policy) {
  if (!record.time_us || record.time_us->median >= policy.roofline_us) return;
  const std::string time = reports::format_time(record.time_us->median);
  if (record.time_us->median < policy.impossible_us) {
    record.outcome = Outcome::untrusted;
    record.reason =
        time + " is below what any such CPU can do: " + reports::format_time(policy.impossible_us);
  } else if (const Status work = contender.recheck(); !work.ok()) {
    record.outcome = Outcome::untrusted;
    record.reason =
        time + " is below the roofline, and the step did not do its work: " + work.error().message;
  }
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
  judge_time(record, measure(step, policy.measure, setting.clock()));
  doubt_time(record, *contender, policy);
  record.measure_us = steady_clock().now_us() - start;
  return record;
}

double roofline_us(const Problem& problem, const MachineLimits& limits, int threads) {
  const double peak = limits.peak_gflops(threads);
  return peak > 0 ? step_flops(problem) / (kPeakMargin * peak * 1e3) : 0;
}

double impossible_us(const Problem& problem, const DeviceInfo& device) {
  if (device.backend != "cpu") return 0;
  double flops = kMostFlopsPerCycle;
  for (const FlopsPerCycle& row : kFlopsPerCycle) {
    if (!device.isa.empty() && device.isa.front().starts_with(row.isa)) flops = row.flops;
  }
  return step_flops(problem) / (flops * kMostGhz * 1e3 * device.threads);
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
