// SPDX-License-Identifier: Apache-2.0
// The space of a problem on a device: the tree of all configs, variant first, then the parameters
// that exist under it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "variants.hpp"

namespace rnntune {

class Space {
 public:
  Space(const Problem& problem, const DeviceInfo& device);

  struct Branch {
    const Variant* variant;
    std::string
        why_not;  // not empty: the variant cannot compute this problem here, and has no parameters
    std::vector<Parameter> parameters;
  };
  const std::vector<Branch>& branches() const { return branches_; }

  // Why a config is not in the space: unknown variant or parameter, missing parameter, value out of
  // range, constraint. Empty when it is. What a database holds for another shape is judged by this.
  std::string why_not(const Config& config) const;

  // Visits every valid config once, in a fixed order; return false from the visitor to stop.
  void each(const std::function<bool(const Config&)>& visit) const;
  std::int64_t count() const;

  // The built-in choice: of the first variant, in table order, that can compute the problem.
  Result<Config> built_in() const;

 private:
  Problem problem_;
  DeviceInfo device_;
  std::vector<Branch> branches_;
};

}  // namespace rnntune
