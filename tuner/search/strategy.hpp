// SPDX-License-Identifier: Apache-2.0
// The strategy table: who decides which config is tried next. A new strategy is one file in
// strategies/ that defines its row, and the row's name in strategies.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "space.hpp"

namespace rnntune::tuner {

class Strategy {
 public:
  virtual ~Strategy() = default;
  // The next config, of the space and not proposed before; none when there is nothing left to try.
  virtual std::optional<Config> propose() = 0;
  // What became of a config, proposed or not; infinity for one that failed.
  virtual void observe(const Config& config, double time_us) = 0;
  // Whether every config of the space has been proposed.
  virtual bool complete() const = 0;
};

struct StrategyRow {
  const char* name;
  const char* help;
  // `space` outlives the strategy.
  std::unique_ptr<Strategy> (*make)(const Space& space, std::uint64_t seed);
};

std::span<const StrategyRow* const> strategies();
const StrategyRow* find_strategy(std::string_view name);

}  // namespace rnntune::tuner
