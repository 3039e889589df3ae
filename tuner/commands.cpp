// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "tuner/command.hpp"

namespace rnntune::tuner {

extern const Command kDb;

// In the order of --help.
std::span<const Command* const> commands() {
  static constexpr std::array table{&kDb};
  return table;
}

}  // namespace rnntune::tuner
