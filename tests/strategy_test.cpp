// SPDX-License-Identifier: Apache-2.0
// Every strategy of the table, by the same rules, on a real space.
#include "tuner/search/strategy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tuner/search/sample.hpp"

namespace rnntune::tuner {
namespace {

class StrategyTest : public testing::TestWithParam<const StrategyRow*> {
 protected:
  StrategyTest()
      : device_((*open_device("cpu", {.threads = 2, .isa = {}}))->info()),
        space_(*parse_problem("lstm:T3,B2,I4,H5"), device_) {}

  std::vector<std::string> proposals(std::uint64_t seed, std::size_t most) const {
    const auto strategy = GetParam()->make(space_, seed);
    std::vector<std::string> proposed;
    while (proposed.size() < most) {
      const auto config = strategy->propose();
      if (!config) break;
      strategy->observe(*config, 1);
      proposed.push_back(to_string(*config));
    }
    return proposed;
  }

  DeviceInfo device_;
  Space space_;
};

TEST_P(StrategyTest, ProposesEveryConfigOnceAndThenIsComplete) {
  const auto strategy = GetParam()->make(space_, 1);
  const std::int64_t count = space_.count();
  std::set<std::string> seen;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto config = strategy->propose();
    ASSERT_TRUE(config) << i << " of " << count;
    EXPECT_EQ(space_.why_not(*config), "");
    EXPECT_TRUE(seen.insert(to_string(*config)).second) << to_string(*config);
    strategy->observe(*config, 1);
  }
  EXPECT_FALSE(strategy->propose());
  EXPECT_TRUE(strategy->complete());
}

TEST_P(StrategyTest, IsNotCompleteBeforeTheEnd) {
  const auto strategy = GetParam()->make(space_, 1);
  ASSERT_TRUE(strategy->propose());
  EXPECT_FALSE(strategy->complete());
}

TEST_P(StrategyTest, TheSeedDecidesTheOrder) {
  EXPECT_EQ(proposals(1, 20), proposals(1, 20));
  EXPECT_NE(proposals(1, 20), proposals(2, 20));
}

TEST(Local, ClimbsOneParameterAtATimeFromTheBestSeed) {
  const DeviceInfo device = (*open_device("cpu", {.threads = 2, .isa = {}}))->info();
  const Space space(*parse_problem("lstm:T35,B20,I64,H64"), device);
  // The farther from the target, the slower: a landscape without local optima.
  const Config target = *space.built_in();
  const auto distance = [&](const Config& config) {
    if (config.variant != target.variant) return 100.0;
    double differing = 1;
    for (const auto& [name, value] : target.params) differing += config.get(name) != value;
    return differing;
  };
  Config seed = target;
  space.each([&](const Config& config) {
    if (config.variant == target.variant && distance(config) > distance(seed)) seed = config;
    return true;
  });
  const auto strategy = find_strategy("local")->make(space, 1);
  strategy->observe(seed, distance(seed));
  double best = distance(seed);
  ASSERT_GE(best, 5);
  int evaluations = 0;
  for (; best > 1; ++evaluations) {
    const auto config = strategy->propose();
    ASSERT_TRUE(config);
    const double time = distance(*config);
    EXPECT_LE(time, best + 1) << "not a neighbour: " << to_string(*config);
    strategy->observe(*config, time);
    best = std::min(best, time);
  }
  EXPECT_LT(evaluations, space.count() / 8);
}

TEST(Local, AConfigThatFailedIsNoCentre) {
  const DeviceInfo device = (*open_device("cpu", {.threads = 2, .isa = {}}))->info();
  const Space space(*parse_problem("lstm:T3,B2,I4,H5"), device);
  const auto strategy = find_strategy("local")->make(space, 1);
  std::set<std::string> seen;
  while (const auto config = strategy->propose()) {
    EXPECT_TRUE(seen.insert(to_string(*config)).second);
    strategy->observe(*config, std::numeric_limits<double>::infinity());
  }
  EXPECT_EQ(static_cast<std::int64_t>(seen.size()), space.count());
}

INSTANTIATE_TEST_SUITE_P(Table, StrategyTest,
                         testing::ValuesIn(strategies().begin(), strategies().end()),
                         [](const auto& row) { return std::string(row.param->name); });

TEST(Strategies, AreFoundByName) {
  for (const StrategyRow* row : strategies()) EXPECT_EQ(find_strategy(row->name), row);
  EXPECT_EQ(find_strategy("luck"), nullptr);
}

TEST(Sampler, DrawsFromTheBranchesGiven) {
  const DeviceInfo device = (*open_device("cpu"))->info();
  const Space space(*parse_problem("lstm:T3,B2,I4,H5"), device);
  for (const Space::Branch* branch : usable_branches(space)) {
    Sampler sampler(space, 1);
    const auto config = sampler.draw({branch});
    ASSERT_TRUE(config);
    EXPECT_EQ(config->variant, branch->variant->name);
  }
  EXPECT_FALSE(Sampler(space, 1).draw({}));
}

}  // namespace
}  // namespace rnntune::tuner
