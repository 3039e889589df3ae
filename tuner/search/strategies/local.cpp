// SPDX-License-Identifier: Apache-2.0
// Iterated local search. A climb tries the neighbours of its centre (one parameter changed) in
// random order and moves to the first that is faster; where none is, the next climb starts from the
// best config so far with a few parameters changed, or from a config drawn at random, so that a
// poor seed cannot hold the search.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "tuner/search/sample.hpp"
#include "tuner/search/strategy.hpp"

namespace rnntune::tuner {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr std::size_t kDrawnEvery = 3;  // of so many climbs, one starts at random
constexpr std::size_t kKickMost = 3;    // parameters changed for a new climb, at most
constexpr int kKicksInVain = 100;

struct Point {
  Config config;
  double time_us = kNone;
};

class LocalSearch : public Strategy {
 public:
  LocalSearch(const Space& space, std::uint64_t seed)
      : random_(seed), sampler_(space, random_.next()), branches_(usable_branches(space)) {}

  std::optional<Config> propose() override {
    while (!queue_.empty()) {
      Config config = std::move(queue_.back());
      queue_.pop_back();
      if (sampler_.take(config)) return config;
    }
    return new_climb();
  }

  void observe(const Config& config, double time_us) override {
    sampler_.take(config);
    if (time_us < best_.time_us) best_ = {config, time_us};
    if (!(time_us < centre_.time_us)) return;
    centre_ = {config, time_us};
    queue_ = neighbours(config);
    for (std::size_t left = queue_.size(); left > 1; --left) {
      std::swap(queue_[left - 1], queue_[random_.below(left)]);
    }
  }

  bool complete() const override { return exhausted_; }

 private:
  std::optional<Config> new_climb() {
    centre_ = {};
    const bool drawn = random_.below(kDrawnEvery) == 0;
    if (!drawn && best_.time_us < kNone) {
      if (auto config = kicked()) return config;
    }
    std::optional<Config> config = sampler_.draw(branches_);
    exhausted_ = !config;
    return config;
  }

  // The best config with some parameters changed; none where that was always tried before.
  std::optional<Config> kicked() {
    const std::vector<Parameter>* parameters = parameters_of(best_.config);
    if (parameters == nullptr || parameters->empty()) return std::nullopt;
    for (int kick = 0; kick < kKicksInVain; ++kick) {
      Config config = best_.config;
      for (std::size_t changes = 1 + random_.below(kKickMost); changes > 0; --changes) {
        const Parameter& parameter = (*parameters)[random_.below(parameters->size())];
        config =
            with(config, parameter.name, parameter.values[random_.below(parameter.values.size())]);
      }
      if (sampler_.take(config)) return config;
    }
    return std::nullopt;
  }

  std::vector<Config> neighbours(const Config& centre) const {
    std::vector<Config> found;
    const std::vector<Parameter>* parameters = parameters_of(centre);
    if (parameters == nullptr) return found;
    for (const Parameter& parameter : *parameters) {
      for (const std::string& value : parameter.values) {
        if (centre.get(parameter.name) == value) continue;
        found.push_back(with(centre, parameter.name, value));
      }
    }
    return found;
  }

  const std::vector<Parameter>* parameters_of(const Config& config) const {
    for (const Space::Branch* branch : branches_) {
      if (config.variant == branch->variant->name) return &branch->parameters;
    }
    return nullptr;
  }

  static Config with(Config config, const std::string& name, const std::string& value) {
    for (auto& [key, held] : config.params) {
      if (key == name) held = value;
    }
    return config;
  }

  Random random_;
  Sampler sampler_;
  std::vector<const Space::Branch*> branches_;
  Point centre_, best_;
  std::vector<Config> queue_;  // neighbours of the centre that were not tried yet
  bool exhausted_ = false;
};

}  // namespace

extern const StrategyRow kLocal;
const StrategyRow kLocal{"local", "climbs from the best config so far, one parameter at a time",
                         [](const Space& space, std::uint64_t seed) -> std::unique_ptr<Strategy> {
                           return std::make_unique<LocalSearch>(space, seed);
                         }};

}  // namespace rnntune::tuner
