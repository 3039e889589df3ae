// SPDX-License-Identifier: Apache-2.0
// Every config of the space, in a seeded order, so that a budget that ends early has seen a fair
// sample of it.
#include <utility>
#include <vector>

#include "tuner/search/random.hpp"
#include "tuner/search/strategy.hpp"

namespace rnntune::tuner {
namespace {

class Exhaustive : public Strategy {
 public:
  Exhaustive(const Space& space, std::uint64_t seed) {
    space.each([&](const Config& config) { return configs_.push_back(config), true; });
    Random random(seed);
    for (std::size_t left = configs_.size(); left > 1; --left) {
      std::swap(configs_[left - 1], configs_[random.below(left)]);
    }
  }

  std::optional<Config> propose() override {
    if (complete()) return std::nullopt;
    return configs_[next_++];
  }
  void observe(const Config&, double) override {}
  bool complete() const override { return next_ == configs_.size(); }

 private:
  std::vector<Config> configs_;
  std::size_t next_ = 0;
};

}  // namespace

extern const StrategyRow kExhaustive;
const StrategyRow kExhaustive{
    "exhaustive", "every config, in a seeded order",
    [](const Space& space, std::uint64_t seed) -> std::unique_ptr<Strategy> {
      return std::make_unique<Exhaustive>(space, seed);
    }};

}  // namespace rnntune::tuner
