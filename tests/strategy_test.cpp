// SPDX-License-Identifier: Apache-2.0
// Every strategy of the table, by the same rules, on a real space.
#include "tuner/strategy.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tuner/sample.hpp"

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
