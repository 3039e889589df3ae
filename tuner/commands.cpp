// SPDX-License-Identifier: Apache-2.0
#include "tuner/command.hpp"

namespace rnntune::tuner {

// In the order of --help.
std::span<const Command* const> commands() { return {}; }

}  // namespace rnntune::tuner
