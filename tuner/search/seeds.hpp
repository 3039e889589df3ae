// SPDX-License-Identifier: Apache-2.0
// What a search tries first, so that there always is a result and a short budget is spent near it.
#pragma once

#include <string>
#include <vector>

#include "space.hpp"

namespace rnntune::tuner {

// In this order, each once: what the lookup ladder answers over `db` and the databases that ship;
// the winners in `db` of the most similar problems on this silicon, however far, since a seed is
// tried and not trusted; the built-in config of each variant.
std::vector<Config> seeds(const Problem& problem, const DeviceInfo& device, const Space& space,
                          const std::string& db);

}  // namespace rnntune::tuner
