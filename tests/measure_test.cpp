// SPDX-License-Identifier: Apache-2.0
// Measurement and its statistics on a simulated clock: no test here depends on the machine.
#include "tuner/measure/measure.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tuner/contenders/finalists.hpp"
#include "tuner/search/random.hpp"

namespace rnntune::tuner {
namespace {

using testing::HasSubstr;

class SimulatedClock : public Clock {
 public:
  double now_us() override { return now_; }
  double cpu_us() override { return 2 * now_; }
  void advance(double us) { now_ += us; }

 private:
  double now_ = 0;
};

double uniform(Random& random) { return static_cast<double>(random.next() >> 11) * 0x1p-53; }

// A step of a given time, +-noise uniformly; the first steps of the clock's life may be slower.
struct Simulation {
  SimulatedClock clock;
  Random random{1};
  int slow_steps = 0;
  double slow_factor = 1;
  int steps = 0;

  Step step(double time_us, double noise) {
    return [this, time_us, noise]() -> Status {
      const double factor = ++steps <= slow_steps ? slow_factor : 1;
      clock.advance(factor * time_us * (1 + noise * (2 * uniform(random) - 1)));
      return {};
    };
  }
};

TEST(Statistics, Median) {
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 2, 3}), 2.5);
  // One outlier does not move it (R48).
  EXPECT_EQ(median(std::vector<double>{10, 10.1, 9.9, 10.05, 9.95, 10, 10.1, 9.9, 10, 30}), 10);
}

TEST(Statistics, IntervalOfTheMedianNeedsSixSamples) {
  EXPECT_FALSE(median_interval(std::vector<double>{1}));
  EXPECT_FALSE(median_interval(std::vector<double>{1, 2, 3, 4, 5}));
  const auto six = median_interval(std::vector<double>{5, 1, 6, 2, 4, 3});
  ASSERT_TRUE(six);
  EXPECT_EQ(six->low, 1);
  EXPECT_EQ(six->high, 6);
}

TEST(Statistics, IntervalRanksAreThoseOfTheTables) {
  // Ranks of the 95% interval in tables of the sign test.
  struct Row {
    int n, low, high;
  };
  for (const Row& row : {Row{8, 1, 8}, Row{9, 2, 8}, Row{10, 2, 9}, Row{20, 6, 15}, Row{50, 18, 33},
                         Row{100, 40, 61}}) {
    std::vector<double> samples;
    for (int i = 1; i <= row.n; ++i) samples.push_back(i);
    const auto interval = median_interval(samples);
    ASSERT_TRUE(interval) << row.n;
    EXPECT_EQ(interval->low, row.low) << row.n;
    EXPECT_EQ(interval->high, row.high) << row.n;
  }
}

TEST(Statistics, IntervalHoldsTheMedianAsOftenAsItSays) {
  Random random(7);
  int held = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples;
    for (int i = 0; i < 25; ++i) samples.push_back(-std::log(1 - uniform(random)));  // skewed
    const auto interval = median_interval(samples);
    held += interval->low <= std::log(2.0) && std::log(2.0) <= interval->high;
  }
  EXPECT_GE(held, 0.95 * kTrials - 20);
  EXPECT_LE(held, 0.99 * kTrials);
}

TEST(Statistics, NoiseOfOneSampleIsUnknown) {
  const Summary one = summarize(std::vector<double>{5});
  EXPECT_EQ(one.median, 5);
  EXPECT_FALSE(one.noise());
}

TEST(Statistics, PairedRatiosCancelDrift) {
  std::vector<double> ours, theirs;
  for (int i = 0; i < 20; ++i) {
    const double drift = 1 + 0.1 * i;  // three times slower in the end
    ours.push_back(100 * drift);
    theirs.push_back(103 * drift);
  }
  const Summary ratio = paired_ratio(ours, theirs);
  EXPECT_DOUBLE_EQ(ratio.median, 1.03);
  EXPECT_NEAR(ratio.interval->low, 1.03, 1e-12);
  EXPECT_FALSE(tied(ratio));
}

TEST(Measure, ConvergesOnAQuietStep) {
  Simulation simulation;
  const auto timing = measure(simulation.step(1000, 0.001), {}, simulation.clock);
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(timing->stop, Stop::converged);
  EXPECT_EQ(timing->summary.samples, 10);
  EXPECT_NEAR(timing->summary.median, 1000, 1);
  EXPECT_EQ(timing->steps_per_sample, 1);
}

TEST(Measure, ShortStepsAreRepeatedWithinASample) {
  Simulation simulation;
  const auto timing = measure(simulation.step(2, 0.001), {}, simulation.clock);
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(timing->steps_per_sample, 128);  // the power of two above 200 us / 2 us
  EXPECT_NEAR(timing->summary.median, 2, 0.01);
}

TEST(Measure, NoiseForEverEndsAndIsNamed) {
  Simulation simulation;
  MeasurePolicy policy;
  policy.max_samples = 50;
  policy.budget_us = 1e9;
  const auto by_samples = measure(simulation.step(1000, 0.5), policy, simulation.clock);
  ASSERT_TRUE(by_samples.ok());
  EXPECT_EQ(by_samples->stop, Stop::samples);
  EXPECT_EQ(by_samples->summary.samples, 50);
  EXPECT_THAT(by_samples->note(0.01), HasSubstr("% > 1%"));

  policy.max_samples = 1000000;
  policy.budget_us = 200e3;
  const auto by_budget = measure(simulation.step(1000, 0.5), policy, simulation.clock);
  ASSERT_TRUE(by_budget.ok());
  EXPECT_EQ(by_budget->stop, Stop::budget);
  EXPECT_LT(by_budget->cost_us, 203e3);
}

TEST(Measure, AClockThatStandsStillIsAnError) {
  SimulatedClock clock;
  const auto timing = measure([]() -> Status { return {}; }, {}, clock);
  ASSERT_FALSE(timing.ok());
  EXPECT_THAT(timing.error().message, HasSubstr("timer resolution"));
}

TEST(Measure, AFailedStepIsAnError) {
  Simulation simulation;
  int calls = 0;
  const auto timing = measure(
      [&]() -> Status {
        simulation.clock.advance(1000);
        if (++calls == 15) return Error{ErrorCode::internal, "lost"};
        return {};
      },
      {}, simulation.clock);
  ASSERT_FALSE(timing.ok());
  EXPECT_EQ(timing.error().message, "lost");
}

TEST(Measure, WarmsUpUntilSteady) {
  Simulation simulation;
  simulation.slow_steps = 20;
  simulation.slow_factor = 1.5;
  const auto timing = measure(simulation.step(1000, 0.001), {}, simulation.clock);
  ASSERT_TRUE(timing.ok());
  EXPECT_NEAR(timing->summary.median, 1000, 2);
}

TEST(Measure, AConfigThatCannotWinIsDroppedEarly) {
  Simulation simulation;
  MeasurePolicy policy;
  policy.best_us = 1000;
  for (const auto& [time_us, samples] : {std::pair{2100, 1}, {1600, 2}, {1350, 3}}) {
    const auto far = measure(simulation.step(time_us, 0.01), policy, simulation.clock);
    ASSERT_TRUE(far.ok());
    EXPECT_EQ(far->stop, Stop::raced);
    EXPECT_EQ(far->summary.samples, samples);
  }
  const auto slower = measure(simulation.step(1200, 0.05), policy, simulation.clock);
  ASSERT_TRUE(slower.ok());
  EXPECT_EQ(slower->stop, Stop::raced);
  EXPECT_EQ(slower->summary.samples, 6);
  const auto close = measure(simulation.step(1050, 0.01), policy, simulation.clock);
  ASSERT_TRUE(close.ok());
  EXPECT_NE(close->stop, Stop::raced);
}

TEST(Interleaved, TurnsAreAbbaAndPaired) {
  SimulatedClock clock;
  std::string order;
  const auto contender = [&](char name, double time_us) -> Step {
    return [&clock, &order, name, time_us]() -> Status {
      order += name;
      clock.advance(time_us);
      return {};
    };
  };
  const std::vector<Step> steps{contender('a', 60e3), contender('b', 90e3)};
  MeasurePolicy policy;
  policy.min_samples = 6;
  const auto comparison = measure_interleaved(steps, policy, clock);
  ASSERT_TRUE(comparison.ok());
  EXPECT_THAT(order, testing::EndsWith("abbaabba"));
  EXPECT_EQ(comparison->ratios[0].median, 1);
  EXPECT_DOUBLE_EQ(comparison->ratios[1].median, 1.5);
  EXPECT_EQ(comparison->stop, Stop::converged);
}

// R43: A = 100 us, B = 103 us, noise +-5%, a slow start, either order, 100 seeds.
TEST(Interleaved, TheFasterOfTwoCloseConfigsWins) {
  for (const bool a_first : {true, false}) {
    int right = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      Simulation simulation;
      simulation.random = Random(seed);
      simulation.slow_steps = 20;
      simulation.slow_factor = 1.5;
      Contender a, b;
      a.step = simulation.step(100, 0.05);
      b.step = simulation.step(103, 0.05);
      a.config.variant = b.config.variant = "cell";
      const std::vector<Contender> contenders{a_first ? a : b, a_first ? b : a};
      MeasurePolicy policy;
      policy.min_samples = 8;
      const auto result = race(contenders, policy, simulation.clock);
      ASSERT_TRUE(result.ok());
      right += result->winner == (a_first ? 0u : 1u);
    }
    EXPECT_GE(right, 95) << "A first: " << a_first;
  }
}

TEST(Interleaved, AnOpponentIsTheFastestOfItsName) {
  std::vector<Contender> contenders(4);
  std::vector<Timing> timings(4);
  for (const auto& [i, name, time_us] : {std::tuple{0, "rnntune", 5.0},
                                         {1, "onednn", 9.0},
                                         {2, "onednn", 8.0},
                                         {3, "unfused", 20.0}}) {
    contenders[static_cast<std::size_t>(i)].name = name;
    timings[static_cast<std::size_t>(i)].summary.median = time_us;
  }
  EXPECT_TRUE(fastest_of_name(contenders, timings, 0));
  EXPECT_FALSE(fastest_of_name(contenders, timings, 1));
  EXPECT_TRUE(fastest_of_name(contenders, timings, 2));
  EXPECT_TRUE(fastest_of_name(contenders, timings, 3));
}

TEST(Interleaved, EqualConfigsAreTiedAndLessMemoryWins) {
  Simulation simulation;
  Contender large, small, slow;
  large.step = simulation.step(1000, 0.05);
  large.sizes.reserve = 2000;
  small.step = simulation.step(1000, 0.05);
  small.sizes.reserve = 1000;
  slow.step = simulation.step(1200, 0.05);
  large.config.variant = small.config.variant = slow.config.variant = "cell";
  const auto result = race(std::vector<Contender>{large, small, slow}, {}, simulation.clock);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->winner, 1u);
  EXPECT_THAT(result->tied, testing::ElementsAre(0u));
  EXPECT_GT(result->comparison.ratios[2].interval->low, 1.1);
}

// An entry that loses to a variant of ours measured beside it is never written: the baseline that
// came as an opponent wins like any other config, a library never does.
TEST(Interleaved, TheBaselineMayWinAndALibraryMayNot) {
  Simulation simulation;
  Contender tuned, baseline, library;
  tuned.name = tuned.config.variant = "cell";
  tuned.step = simulation.step(254, 0.02);
  baseline.name = baseline.config.variant = "unfused";
  baseline.step = simulation.step(200, 0.02);
  library.name = "onednn";
  library.step = simulation.step(100, 0.02);
  const auto result = race(std::vector<Contender>{tuned, library, baseline}, {}, simulation.clock);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->winner, 2u);
  EXPECT_THAT(result->tied, testing::IsEmpty());
  EXPECT_NEAR(result->comparison.ratios[0].median, 1.27, 0.05);
  EXPECT_NEAR(result->comparison.ratios[1].median, 0.5, 0.02);
}

}  // namespace
}  // namespace rnntune::tuner
