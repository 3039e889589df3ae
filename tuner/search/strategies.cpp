// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "tuner/search/strategy.hpp"

namespace rnntune::tuner {

extern const StrategyRow kExhaustive;
extern const StrategyRow kLocal;
extern const StrategyRow kRandom;

std::span<const StrategyRow* const> strategies() {
  static constexpr std::array table{&kLocal, &kRandom, &kExhaustive};
  return table;
}

const StrategyRow* find_strategy(std::string_view name) {
  for (const StrategyRow* row : strategies()) {
    if (name == row->name) return row;
  }
  return nullptr;
}

}  // namespace rnntune::tuner
