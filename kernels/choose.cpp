// SPDX-License-Identifier: Apache-2.0
#include "choose.hpp"

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
  Result<Config> built_in = space.built_in();
  if (!built_in) return built_in.error();
  return Explanation{Rung::built_in, *built_in, {}, 0, {}};
}

}  // namespace rnntune
