// SPDX-License-Identifier: Apache-2.0
#include "tuner/search/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/database_samples.hpp"

namespace rnntune::tuner {
namespace {

using samples::problem;

class SeedsTest : public testing::Test {
 protected:
  SeedsTest()
      : device_((*open_device("cpu", {.threads = 2, .isa = {}}))->info()),
        space_(problem(kAsked), device_) {
    // Far from each other, so that each stands for itself: every n-th config of the space.
    std::int64_t at = 0;
    space_.each([&](const Config& config) {
      if (at++ % 20 == 0) configs_.push_back(config);
      return true;
    });
  }

  Entry winner(const std::string& text, const Config& config) const {
    Entry entry = samples::entry(text);
    entry.config = config;
    return entry;
  }

  std::vector<Config> seeds_with(std::initializer_list<Entry> entries, DeviceInfo on) const {
    const std::string path = folder_ / "db.json";
    samples::write_database(path, std::move(on), entries);
    return seeds(problem(kAsked), device_, space_, path);
  }

  std::size_t built_ins() const {
    return seeds(problem(kAsked), device_, space_, folder_ / "absent.json").size();
  }

  static constexpr const char* kAsked = "lstm:L2,T35,B20,I650,H650,f32";
  samples::Folder folder_;
  DeviceInfo device_;
  Space space_;
  std::vector<Config> configs_;
};

TEST_F(SeedsTest, WithoutADatabaseTheyAreTheBuiltInConfigs) {
  const auto found = seeds(problem(kAsked), device_, space_, folder_ / "absent.json");
  ASSERT_FALSE(found.empty());
  for (const Space::Branch& branch : space_.branches()) {
    const Config built_in = branch.variant->built_in(problem(kAsked), device_);
    EXPECT_EQ(std::count(found.begin(), found.end(), built_in), branch.why_not.empty());
  }
}

TEST_F(SeedsTest, TheNearestWinnersComeFirstHoweverFarAndWhateverTheLayers) {
  const auto found = seeds_with({winner("lstm:L2,T35,B20,I1500,H1500,f32", configs_[1]),
                                 winner("lstm:L1,T35,B20,I660,H660,f32", configs_[2]),
                                 winner("lstm:L2,T20,B1,I20,H20,f32", configs_[3]),
                                 winner("lstm:L2,T20,B20,I200,H200,f32", configs_[4])},
                                device_);
  ASSERT_EQ(found.size(), 3 + built_ins());
  EXPECT_EQ(found[0], configs_[2]);
  EXPECT_EQ(found[1], configs_[1]);
  EXPECT_EQ(found[2], configs_[4]);
}

TEST_F(SeedsTest, EachIsTriedOnce) {
  const auto found = seeds_with({winner("lstm:L2,T35,B20,I700,H700,f32", configs_[1]),
                                 winner("lstm:L2,T35,B20,I800,H800,f32", configs_[1])},
                                device_);
  EXPECT_EQ(found.size(), 1 + built_ins());
}

TEST_F(SeedsTest, ConfigsOutsideTheSpaceAndOtherSiliconDoNotCount) {
  Config odd = configs_[1];
  odd.params.front().second = "odd";
  EXPECT_EQ(seeds_with({winner("lstm:L2,T35,B20,I700,H700,f32", odd)}, device_).size(),
            built_ins());
  DeviceInfo other = device_;
  other.key = "cpu:another";
  other.architecture = "another";
  EXPECT_EQ(seeds_with({winner("lstm:L2,T35,B20,I700,H700,f32", configs_[1])}, other).size(),
            built_ins());
}

}  // namespace
}  // namespace rnntune::tuner
