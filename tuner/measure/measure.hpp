// SPDX-License-Identifier: Apache-2.0
// Timing a step: warm up until steady, then samples until the 95% interval of the median is narrow
// enough or the budget ends; several contenders are timed interleaved, A B B A.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "rnntune/result.hpp"
#include "tuner/measure/statistics.hpp"

namespace rnntune::tuner {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual double now_us() = 0;  // monotonic
  virtual double cpu_us() = 0;  // spent by all threads of the process

  // A sample is what the calling thread does between these two calls; end_sample says how long it
  // took, by now_us() unless a device knows better.
  virtual Status begin_sample();
  virtual Result<double> end_sample();
  // Whether end_sample waits for what was queued on the device, so that a step need not.
  virtual bool completes_steps() const { return false; }

  // What times the samples, for records: empty where it is now_us().
  virtual std::string source() const { return {}; }
  // Changes when the source does: samples from then on are not to be mixed with earlier ones.
  virtual int source_changes() const { return 0; }

  // Runs what needs for itself the profiler that samples are timed with. No sample is open.
  virtual void set_aside(const std::function<void()>& body) { body(); }

 private:
  double begun_us_ = 0;
};

// The machine's monotonic clock.
Clock& steady_clock();

enum class Stop { converged, budget, samples, raced };
const char* to_string(Stop stop);

struct MeasurePolicy {
  double target = 0.01;        // width of the interval relative to the median
  int min_samples = 10;        // or A B B A rounds
  int max_samples = 1000;      // the cap of a contender that never gets quiet
  double budget_us = 2e6;      // of one contender, warm-up included
  double min_sample_us = 200;  // a shorter step is repeated within a sample
  double warmup_us = 30e3;     // warm up at least this long, or two steps
  // The best median so far. A contender is dropped when its first samples are all above kFarSlower
  // times this, or when its interval lies above kClearlySlower times this: it cannot win, and its
  // exact time is not worth the budget.
  double best_us = std::numeric_limits<double>::infinity();
  int race_after = 1;  // samples: more of them where a good contender must not be lost to noise
};
inline constexpr double kFarSlower[] = {2, 1.5, 1.25};  // after one, two, three samples
inline constexpr double kClearlySlower = 1.1;

struct Timing {
  std::vector<double> samples_us;  // per step
  std::vector<double> cpu_us;      // per step, of all threads, spinning included
  Summary summary;
  Stop stop = Stop::converged;
  int steps_per_sample = 1;
  double cost_us = 0;  // wall time of the measurement

  // For people: "converged", or why the figure is less sure than asked: "noise 20% > 1%".
  std::string note(double target) const;
};

// A step runs once and is complete when it returns, or when the sample of a clock ends that
// completes steps; an error ends the measurement.
using Step = std::function<Status()>;

// Fails when a step fails, and when the clock cannot resolve the step ("timer resolution").
Result<Timing> measure(const Step& step, const MeasurePolicy& policy, Clock& clock);

struct Comparison {
  std::vector<Timing> timings;  // one sample each round; the samples of a round belong together
  std::vector<Summary> ratios;  // time of i / time of contender 0; above 1: contender 0 is faster
  Stop stop = Stop::converged;
};

// Rounds of A B C C B A until the interval of every ratio is narrow enough or the budget (of all
// contenders together) ends. A round's sample is the mean of its two turns, so that linear drift
// cancels; before each turn a contender runs once untimed, so that it finds caches and thread pools
// as its own and not as the one before left them.
Result<Comparison> measure_interleaved(std::span<const Step> contenders,
                                       const MeasurePolicy& policy, Clock& clock);

// Whether contender 0 and i cannot be told apart: the interval of their ratio holds 1, or there is
// no interval.
bool tied(const Summary& ratio);

}  // namespace rnntune::tuner
