// SPDX-License-Identifier: Apache-2.0
#include "variants.hpp"

#include "cpu/cpu_variants.hpp"
#include "cuda/cuda_variants.hpp"

namespace rnntune {

std::span<const Variant* const> variants() {
  // In the order of preference for the built-in default.
  static const std::vector<const Variant*> table{
      &cpu::cell_variant(),       &cpu::pointwise_variant(), &cpu::unfused_variant(),
      &cuda::pointwise_variant(), &cuda::unfused_variant(),
  };
  return table;
}

bool runs_on(const Variant& variant, std::string_view device_backend) {
  return variant.backend == (device_backend == "simt" ? "cuda" : device_backend);
}

const Variant* find_variant(std::string_view device_backend, std::string_view name) {
  for (const Variant* variant : variants())
    if (runs_on(*variant, device_backend) && name == variant->name) return variant;
  return nullptr;
}

std::string why_not_lstm(const Problem& p) {
  if (p.cell != Cell::lstm) return std::string("computes lstm, not ") + to_string(p.cell);
  if (p.dtype != Dtype::f32) return std::string("computes f32, not ") + to_string(p.dtype);
  if (p.projection || p.rank || !p.groups.empty() || p.heads != 1) {
    return "computes no projection, groups, rank or heads";
  }
  if (p.directions != 1) return "computes one direction";
  if (p.skip || p.variable_lengths || p.dropout > 0) {
    return "computes no skip input, variable lengths or dropout";
  }
  return {};
}

}  // namespace rnntune
