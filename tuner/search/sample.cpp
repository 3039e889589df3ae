// SPDX-License-Identifier: Apache-2.0
#include "tuner/search/sample.hpp"

namespace rnntune::tuner {
namespace {

// A config that is one in 200 of what may be drawn is missed with a probability of e^-50.
constexpr int kDrawsInVain = 10000;

Config draw_from(const Space::Branch& branch, Random& random) {
  Config config{branch.variant->name, {}};
  for (const Parameter& parameter : branch.parameters) {
    const std::size_t value = random.below(parameter.values.size());
    config.params.emplace_back(parameter.name, parameter.values[value]);
  }
  return config;
}

}  // namespace

std::optional<Config> Sampler::draw(const std::vector<const Space::Branch*>& branches) {
  for (int draws = 0; draws < kDrawsInVain && !branches.empty(); ++draws) {
    Config config = draw_from(*branches[random_.below(branches.size())], random_);
    if (take(config)) return config;
  }
  return std::nullopt;
}

bool Sampler::take(const Config& config) {
  return space_.why_not(config).empty() && seen_.insert(to_string(config)).second;
}

std::vector<const Space::Branch*> usable_branches(const Space& space) {
  std::vector<const Space::Branch*> branches;
  for (const Space::Branch& branch : space.branches()) {
    if (branch.why_not.empty()) branches.push_back(&branch);
  }
  return branches;
}

}  // namespace rnntune::tuner
