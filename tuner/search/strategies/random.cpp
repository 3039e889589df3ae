// SPDX-License-Identifier: Apache-2.0
// Random search: a variant, then a value for each of its parameters, each uniform. Never lists the
// space, so its size does not matter; a variant with few configs is not drowned by one with many.
#include "tuner/search/sample.hpp"
#include "tuner/search/strategy.hpp"

namespace rnntune::tuner {
namespace {

class RandomSearch : public Strategy {
 public:
  RandomSearch(const Space& space, std::uint64_t seed)
      : sampler_(space, seed), branches_(usable_branches(space)) {}

  std::optional<Config> propose() override {
    std::optional<Config> config = sampler_.draw(branches_);
    exhausted_ = !config;
    return config;
  }
  void observe(const Config&, double) override {}
  bool complete() const override { return exhausted_; }

 private:
  Sampler sampler_;
  std::vector<const Space::Branch*> branches_;
  bool exhausted_ = false;
};

}  // namespace

extern const StrategyRow kRandom;
const StrategyRow kRandom{"random", "variants and values drawn uniformly, none twice",
                          [](const Space& space, std::uint64_t seed) -> std::unique_ptr<Strategy> {
                            return std::make_unique<RandomSearch>(space, seed);
                          }};

}  // namespace rnntune::tuner
