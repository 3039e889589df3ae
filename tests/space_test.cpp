// SPDX-License-Identifier: Apache-2.0
// The space: its configs are valid and distinct, and what is not among them is refused by name.
#include "space.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace rnntune {
namespace {

using ::testing::HasSubstr;

Space space_of(const char* problem, int threads = 2) {
  return {*parse_problem(problem), (*open_device("cpu", {threads, ""}))->info()};
}

TEST(SpaceTest, EveryConfigIsValidAndVisitedOnce) {
  const Space space = space_of("lstm:T20,B8,I16,H24");
  std::set<std::string> seen;
  space.each([&](const Config& config) {
    EXPECT_EQ(space.why_not(config), "") << to_string(config);
    EXPECT_TRUE(seen.insert(to_string(config)).second) << to_string(config);
    return true;
  });
  EXPECT_EQ(static_cast<std::int64_t>(seen.size()), space.count());
  EXPECT_GT(space.count(), 10);
}

TEST(SpaceTest, StopsWhenToldTo) {
  int visited = 0;
  space_of("lstm:T20,B8,I16,H24").each([&](const Config&) { return ++visited < 3; });
  EXPECT_EQ(visited, 3);
}

TEST(SpaceTest, EveryVariantsBuiltInConfigIsInItsSpace) {
  for (const char* problem :
       {"lstm:T1,B1,I1,H1", "lstm:L3,T20,B64,I512,H512", "lstm:T9,B3,I7,H5"}) {
    for (const int threads : {1, 2, 3}) {
      const Space space = space_of(problem, threads);
      const DeviceInfo device = (*open_device("cpu", {threads, ""}))->info();
      for (const Space::Branch& branch : space.branches()) {
        if (!branch.why_not.empty()) continue;
        const Config config = branch.variant->built_in(*parse_problem(problem), device);
        EXPECT_EQ(space.why_not(config), "") << to_string(config) << " for " << problem;
      }
    }
  }
}

TEST(SpaceTest, SaysWhyNot) {
  const Space space = space_of("lstm:T20,B8,I16,H24");
  const Config good = *space.built_in();
  Config config = good;
  config.variant = "warp";
  EXPECT_THAT(space.why_not(config), HasSubstr("no variant 'warp'"));
  config = good;
  config.set("vec", "4");
  EXPECT_THAT(space.why_not(config), HasSubstr("no parameter 'vec'"));
  config = good;
  config.params.erase(config.params.begin());
  EXPECT_THAT(space.why_not(config), HasSubstr("is missing"));
  config = good;
  config.set("threads", "7");
  EXPECT_THAT(space.why_not(config), HasSubstr("'threads' = 7 is not one of"));
}

TEST(SpaceTest, NamesWhyNoVariantComputesAProblem) {
  const Space space = space_of("gru:T20,B8,I16,H24");
  EXPECT_EQ(space.count(), 0);
  const Result<Config> config = space.built_in();
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().code, ErrorCode::unsupported);
  EXPECT_THAT(config.error().message, HasSubstr("computes lstm, not gru"));
}

}  // namespace
}  // namespace rnntune
