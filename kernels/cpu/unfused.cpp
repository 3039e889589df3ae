// SPDX-License-Identifier: Apache-2.0
// The row of the `unfused` variant in the variant table, and its space.
//
// The baseline has the freedom of a framework's user and no more: the number of threads, the BLAS,
// and who cuts its products for them. Its threads share each product and each elementwise kernel,
// as a threaded BLAS and a framework's loops do; giving every thread samples of its own for the
// whole sequence is a fusion across operations, which is what the other variants are for.
#include "cpu/unfused.hpp"

#include "cpu/cpu_variants.hpp"
#include "kernel_hashes.hpp"

namespace rnntune::cpu {
namespace {

std::vector<Parameter> parameters(const Problem&, const DeviceInfo& device) {
  return blas_parameters(device);
}

Config built_in(const Problem& problem, const DeviceInfo& device) {
  return {"unfused", blas_guess(problem, device)};
}

Result<std::unique_ptr<Plan>> make(const Problem& problem, std::shared_ptr<Device> device,
                                   const Config& config) {
  return UnfusedPlan::make(problem, elementwise_kernels(device->info().isa.front()),
                           TeamConfig::from(config));
}

}  // namespace

const Variant& unfused_variant() {
  static const Variant variant{
      .name = "unfused",
      .backend = "cpu",
      .help = "the baseline: products of a BLAS and one kernel per elementwise operation",
      .kernel_hash = RNNTUNE_HASH_UNFUSED,
      .why_not = why_not_blas,
      .parameters = parameters,
      .constraints = blas_constraints(),
      .built_in = built_in,
      .make = make,
  };
  return variant;
}

}  // namespace rnntune::cpu
