// SPDX-License-Identifier: Apache-2.0
// Drawing configs at random from a branch of the space, without listing it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "space.hpp"
#include "tuner/search/random.hpp"

namespace rnntune::tuner {

class Sampler {
 public:
  // `space` must outlive the sampler.
  Sampler(const Space& space, std::uint64_t seed) : space_(space), random_(seed) {}

  // A valid config of one of the branches, branch first and then each value drawn uniformly, that
  // was not drawn before; none after too many draws in vain.
  std::optional<Config> draw(const std::vector<const Space::Branch*>& branches);

  // Takes this config as if it had been drawn; false where it is not of the space or was taken.
  bool take(const Config& config);

 private:
  const Space& space_;
  Random random_;
  std::set<std::string> seen_;
};

// The branches that can compute the problem.
std::vector<const Space::Branch*> usable_branches(const Space& space);

}  // namespace rnntune::tuner
