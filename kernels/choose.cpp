// SPDX-License-Identifier: Apache-2.0
#include "choose.hpp"

#include "database/lookup.hpp"
#include "paths.hpp"
#include "space.hpp"

namespace rnntune {

Result<Explanation> choose_config(const Problem& problem, const DeviceInfo& device,
                                  const RnnOptions& options) {
  const Space space(problem, device);
  if (!options.config.variant.empty()) {
    const std::string why = space.why_not(options.config);
    if (!why.empty())
      return invalid_argument("config '" + to_string(options.config) + "' for " +
                              to_string(problem) + ": " + why);
    return Explanation{Rung::given, options.config, {}, 0, {}};
  }
  const std::vector<std::string> standard =
      options.default_databases ? default_databases() : std::vector<std::string>{};
  Result<Explanation> found =
      lookup(problem, device, options.databases, standard, kernels_of(space, device));
  if (found) log_once(problem, device, *found, options.log);
  return found;
}

}  // namespace rnntune
