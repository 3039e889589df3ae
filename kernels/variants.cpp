// SPDX-License-Identifier: Apache-2.0
#include "variants.hpp"

#include "cpu/cpu_variants.hpp"

namespace rnntune {

std::span<const Variant* const> variants() {
  // In the order of preference for the built-in default.
  static const std::vector<const Variant*> table{
      &cpu::cell_variant(),
      &cpu::pointwise_variant(),
      &cpu::unfused_variant(),
  };
  return table;
}

const Variant* find_variant(std::string_view backend, std::string_view name) {
  for (const Variant* variant : variants())
    if (backend == variant->backend && name == variant->name) return variant;
  return nullptr;
}

}  // namespace rnntune
