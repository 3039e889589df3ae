// SPDX-License-Identifier: Apache-2.0
// Run-time choice of instruction set, made once per plan. A kernel source is compiled once per
// Highway target and exports a function that returns its table of kernels (cpu/target.hpp);
// table_of() picks the target that a device allows.
#pragma once

#include <hwy/targets.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace rnntune::cpu {

// Highway's name of a target in our words: "avx512", "avx2", "sse4", "ssse3", "neon", "baseline".
inline std::string isa_name(std::int64_t target) {
  std::string name = hwy::TargetName(target);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name == "avx3") return "avx512";
  if (name == "avx3_dl") return "avx512_dl";
  return name == "emu128" || name == "scalar" || name == "sse2" ? "baseline" : name;
}

// The targets that this CPU has and this library was compiled for, best first; `cap` forbids those
// above it.
inline std::vector<std::int64_t> usable_targets(std::int64_t compiled, std::string_view cap) {
  std::vector<std::int64_t> targets;
  const std::int64_t usable = compiled & hwy::SupportedTargets();
  for (std::int64_t bit = 1; bit > 0 && bit <= usable; bit <<= 1)  // better targets have lower bits
    if (usable & bit) targets.push_back(bit);
  const auto at = std::find_if(targets.begin(), targets.end(),
                               [&](std::int64_t t) { return isa_name(t) == cap; });
  if (at != targets.end()) targets.erase(targets.begin(), at);
  return targets;
}

template <class Kernels>
struct TargetTable {
  std::int64_t target;
  Kernels (*make)();
};

// The best of these targets that the CPU has and `isa` (DeviceInfo::isa.front()) allows.
template <class Kernels>
Kernels table_of(std::initializer_list<TargetTable<Kernels>> tables, std::string_view isa) {
  std::int64_t compiled = 0;
  for (const TargetTable<Kernels>& table : tables) compiled |= table.target;
  const std::int64_t target = usable_targets(compiled, isa).front();
  return std::find_if(tables.begin(), tables.end(),
                      [&](const TargetTable<Kernels>& table) { return table.target == target; })
      ->make();
}

// The same for a source that includes itself for each target (hwy/foreach_target.h); table: the
// array that HWY_EXPORT made.
template <class Table>
auto table_for(const Table& table, std::int64_t compiled, std::string_view isa) {
  hwy::ChosenTarget chosen;
  const std::vector<std::int64_t> targets = usable_targets(compiled, isa);
  chosen.Update(targets.empty() ? hwy::SupportedTargets() : targets.front());
  return table[chosen.GetIndex()]();
}

}  // namespace rnntune::cpu
