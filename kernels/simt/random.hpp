// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rnntune::simt {

// splitmix64
inline std::uint64_t random_below(std::uint64_t& state, std::uint64_t below) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) % below;
}

}  // namespace rnntune::simt
