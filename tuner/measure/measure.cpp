// SPDX-License-Identifier: Apache-2.0
#include "tuner/measure/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <iterator>

namespace rnntune::tuner {
namespace {

constexpr int kMostStepsPerSample = 1 << 16;
constexpr double kLongStepUs = 50e3;   // longer steps find their own caches after a few percent
constexpr double kWarmupShare = 0.25;  // of the budget, at most

class SteadyClock : public Clock {
 public:
  double now_us() override {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(since).count();
  }
  double cpu_us() override {
    timespec spent{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return static_cast<double>(spent.tv_sec) * 1e6 + static_cast<double>(spent.tv_nsec) * 1e-3;
  }
};

// One contender being timed.
class Stopwatch {
 public:
  Stopwatch(const Step& step, const MeasurePolicy& policy, Clock& clock)
      : step_(step), policy_(policy), clock_(clock) {}

  // Finds how many steps a sample needs; each try is twice as long as the one before.
  Status calibrate() {
    for (;; steps_ *= 2) {
      const double start = clock_.now_us();
      if (const Result<double> time = run(); !time.ok()) return time.error();
      if (clock_.now_us() - start >= policy_.min_sample_us) return {};
      if (steps_ >= kMostStepsPerSample) return {};
    }
  }

  // Until three samples in a row are about as fast as the fastest one, but not for ever.
  Status warm_up() {
    const double start = clock_.now_us();
    std::vector<double> times;
    for (;;) {
      const double spent = clock_.now_us() - start;
      if (spent >= policy_.budget_us * kWarmupShare) return {};
      if (spent >= policy_.warmup_us && steady(times)) return {};
      if (!times.empty() && times.back() * steps_ > policy_.warmup_us) return {};
      Result<double> time = sample();
      if (!time.ok()) return time.error();
      times.push_back(*time);
    }
  }

  // Time of a step in microseconds.
  Result<double> sample() {
    const double cpu_start = clock_.cpu_us();
    const Result<double> time = run();
    if (!time.ok()) return time;
    cpu_us_ = (clock_.cpu_us() - cpu_start) / steps_;
    if (!(*time > 0)) {
      return Error{ErrorCode::internal, "timer resolution: " + std::to_string(steps_) +
                                            " steps took no measurable time"};
    }
    return *time / steps_;
  }

  Status repeat(int times) {
    for (int i = 0; i < times; ++i) {
      if (Status status = step_(); !status.ok()) return status;
    }
    return {};
  }

  int steps() const { return steps_; }
  double cpu_us() const { return cpu_us_; }  // per step, of the last sample

 private:
  // Time of all steps of a sample.
  Result<double> run() {
    if (Status status = clock_.begin_sample(); !status.ok()) return status.error();
    const Status status = repeat(steps_);
    const Result<double> time = clock_.end_sample();  // also after a step that failed
    if (!status.ok()) return status.error();
    return time;
  }

  static bool steady(const std::vector<double>& times) {
    if (times.size() < 4) return false;
    const double fastest = *std::min_element(times.begin(), times.end());
    return std::all_of(times.end() - 3, times.end(),
                       [&](double time) { return time <= 1.05 * fastest; });
  }

  const Step& step_;
  const MeasurePolicy& policy_;
  Clock& clock_;
  int steps_ = 1;
  double cpu_us_ = 0;
};

bool lost_race(const Timing& timing, const MeasurePolicy& policy) {
  const std::size_t count = timing.samples_us.size();
  if (count < static_cast<std::size_t>(policy.race_after)) return false;
  if (count <= std::size(kFarSlower)) {
    return *std::min_element(timing.samples_us.begin(), timing.samples_us.end()) >
           kFarSlower[count - 1] * policy.best_us;
  }
  const auto& interval = timing.summary.interval;
  return interval && interval->low > kClearlySlower * policy.best_us;
}

// Why to stop after the samples so far; nothing to go on.
std::optional<Stop> why_stop(const Timing& timing, const MeasurePolicy& policy, double spent_us) {
  const int count = static_cast<int>(timing.samples_us.size());
  if (lost_race(timing, policy)) return Stop::raced;
  if (count < policy.min_samples) return std::nullopt;
  const auto noise = timing.summary.noise();
  if (noise && *noise <= policy.target) return Stop::converged;
  if (count >= policy.max_samples) return Stop::samples;
  if (spent_us >= policy.budget_us) return Stop::budget;
  return std::nullopt;
}

bool converged(const Comparison& comparison, double target) {
  return std::all_of(comparison.ratios.begin(), comparison.ratios.end(), [&](const Summary& ratio) {
    const auto noise = ratio.noise();
    return noise && *noise <= target;
  });
}

// One A B C C B A round; adds a sample to each timing.
Status round(std::vector<Stopwatch>& watches, Comparison& comparison) {
  const std::size_t count = watches.size();
  std::vector<double> sums(count, 0), cpu_sums(count, 0);
  for (std::size_t turn = 0; turn < 2 * count; ++turn) {
    const std::size_t i = turn < count ? turn : 2 * count - 1 - turn;
    const auto& earlier = comparison.timings[i].samples_us;
    if (earlier.empty() || earlier.back() < kLongStepUs) {
      if (Status status = watches[i].repeat(1); !status.ok()) return status;
    }
    const Result<double> time = watches[i].sample();
    if (!time.ok()) return time.error();
    sums[i] += *time;
    cpu_sums[i] += watches[i].cpu_us();
  }
  for (std::size_t i = 0; i < count; ++i) {
    comparison.timings[i].samples_us.push_back(sums[i] / 2);
    comparison.timings[i].cpu_us.push_back(cpu_sums[i] / 2);
  }
  return {};
}

void start_over(Timing& timing) {
  timing.samples_us.clear();
  timing.cpu_us.clear();
}

void summarize_all(Comparison& comparison) {
  for (std::size_t i = 0; i < comparison.timings.size(); ++i) {
    Timing& timing = comparison.timings[i];
    timing.summary = summarize(timing.samples_us);
    comparison.ratios[i] = paired_ratio(comparison.timings[0].samples_us, timing.samples_us);
  }
}

}  // namespace

Status Clock::begin_sample() {
  begun_us_ = now_us();
  return {};
}

Result<double> Clock::end_sample() { return now_us() - begun_us_; }

Clock& steady_clock() {
  static SteadyClock clock;
  return clock;
}

const char* to_string(Stop stop) {
  static const char* const kNames[] = {"converged", "budget", "samples", "raced"};
  return kNames[static_cast<int>(stop)];
}

std::string Timing::note(double target) const {
  if (stop == Stop::converged || stop == Stop::raced) return to_string(stop);
  const auto noise = summary.noise();
  if (!noise) return "too few samples for an interval";
  char text[64];
  std::snprintf(text, sizeof text, "noise %.3g%% > %.3g%%", 100 * *noise, 100 * target);
  return text;
}

Result<Timing> measure(const Step& step, const MeasurePolicy& policy, Clock& clock) {
  const double start = clock.now_us();
  Stopwatch watch(step, policy, clock);
  if (Status status = watch.calibrate(); !status.ok()) return status.error();
  if (Status status = watch.warm_up(); !status.ok()) return status.error();
  Timing timing;
  timing.steps_per_sample = watch.steps();
  for (int source = clock.source_changes();;) {
    const Result<double> time = watch.sample();
    if (!time.ok()) return time.error();
    if (source != clock.source_changes()) start_over(timing);
    source = clock.source_changes();
    timing.samples_us.push_back(*time);
    timing.cpu_us.push_back(watch.cpu_us());
    timing.summary = summarize(timing.samples_us);
    timing.cost_us = clock.now_us() - start;
    if (const auto stop = why_stop(timing, policy, timing.cost_us)) {
      timing.stop = *stop;
      return timing;
    }
  }
}

Result<Comparison> measure_interleaved(std::span<const Step> contenders,
                                       const MeasurePolicy& policy, Clock& clock) {
  const double start = clock.now_us();
  std::vector<Stopwatch> watches;
  Comparison comparison;
  for (const Step& step : contenders) {
    Stopwatch& watch = watches.emplace_back(step, policy, clock);
    if (Status status = watch.calibrate(); !status.ok()) return status.error();
    if (Status status = watch.warm_up(); !status.ok()) return status.error();
    comparison.timings.emplace_back().steps_per_sample = watch.steps();
  }
  comparison.ratios.resize(contenders.size());
  const double budget_us = policy.budget_us * static_cast<double>(contenders.size());
  for (int rounds = 1;; ++rounds) {
    const int source = clock.source_changes();
    if (Status status = round(watches, comparison); !status.ok()) return status.error();
    if (source != clock.source_changes()) {  // within the round: its times do not compare either
      for (Timing& timing : comparison.timings) start_over(timing);
      rounds = 0;
      continue;
    }
    summarize_all(comparison);
    const double spent = clock.now_us() - start;
    if (rounds < policy.min_samples) continue;
    const bool enough = converged(comparison, policy.target);
    if (!enough && rounds < policy.max_samples && spent < budget_us) continue;
    comparison.stop = enough                         ? Stop::converged
                      : rounds >= policy.max_samples ? Stop::samples
                                                     : Stop::budget;
    for (Timing& timing : comparison.timings) {
      timing.stop = comparison.stop;
      timing.cost_us = spent / static_cast<double>(contenders.size());
    }
    return comparison;
  }
}

bool tied(const Summary& ratio) {
  return !ratio.interval || (ratio.interval->low <= 1 && ratio.interval->high >= 1);
}

}  // namespace rnntune::tuner
