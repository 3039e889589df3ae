// SPDX-License-Identifier: Apache-2.0
// The row of the `unfused` variant in the variant table, and its space.
//
// The baseline has the freedom of a framework's user and no more: one product for all gates, as
// frameworks do it, or one per gate, as textbooks do; algorithms are cuBLAS's own choice.
#include "cuda/unfused.hpp"

#include "cuda/cuda_variants.hpp"
#include "kernel_hashes.hpp"

namespace rnntune::cuda {
namespace {

std::vector<Parameter> parameters(const Problem&, const DeviceInfo&) {
  return {{"products", "one product for all gates, or one for each", {"joint", "gate"}}};
}

Config built_in(const Problem&, const DeviceInfo&) { return {"unfused", {{"products", "joint"}}}; }

Result<std::unique_ptr<Plan>> make(const Problem& problem, std::shared_ptr<Device> device,
                                   const Config& config) {
  return UnfusedPlan::make(problem, std::static_pointer_cast<gpu::GpuDevice>(std::move(device)),
                           config.get("products") == "gate");
}

}  // namespace

const Variant& unfused_variant() {
  static const Variant variant{
      .name = "unfused",
      .backend = "cuda",
      .help = "the baseline: products of cuBLAS and one kernel per elementwise operation",
      .kernel_hash = RNNTUNE_HASH_CUDA_UNFUSED,
      .why_not = why_not_products,
      .parameters = parameters,
      .constraints = {},
      .built_in = built_in,
      .make = make,
  };
  return variant;
}

}  // namespace rnntune::cuda
