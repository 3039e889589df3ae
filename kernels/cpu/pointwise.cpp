// SPDX-License-Identifier: Apache-2.0
// The row of the `pointwise` variant in the variant table, and its space.
#include "cpu/pointwise.hpp"

#include "cpu/cpu_variants.hpp"
#include "cpu/team_space.hpp"
#include "kernel_hashes.hpp"

namespace rnntune::cpu {
namespace {

std::vector<Parameter> parameters(const Problem& problem, const DeviceInfo& device) {
  std::vector<std::string> chunks{"0"};
  for (const std::int64_t steps : {1, 4, 16}) {
    if (steps < problem.time) chunks.push_back(std::to_string(steps));
  }
  std::vector<Parameter> all{
      {"layout", "order of the activations inside: hidden or batch fastest", {"tbh", "thb"}},
      {"chunk", "time steps of one input product; 0: all", chunks},
      {"reserve",
       "what backward gets: activated gates, or c to recompute them",
       {"gates", "recompute"}},
      split_parameter()};
  for (Parameter& parameter : blas_parameters(device)) all.push_back(std::move(parameter));
  return all;
}

std::vector<Constraint> constraints() {
  std::vector<Constraint> all = blas_constraints();
  all.push_back(split_constraint());
  return all;
}

Config built_in(const Problem& problem, const DeviceInfo& device) {
  Config config{"pointwise",
                {{"layout", "tbh"}, {"chunk", "0"}, {"reserve", "gates"}, {"split", "hidden"}}};
  for (auto& parameter : blas_guess(problem, device)) config.params.push_back(parameter);
  return config;
}

Result<std::unique_ptr<Plan>> make(const Problem& problem, std::shared_ptr<Device> device,
                                   const Config& config) {
  const std::string& isa = device->info().isa.front();
  return PointwisePlan::make(problem, elementwise_kernels(isa), pointwise_kernels(isa),
                             TeamConfig::from(config),
                             {config.get("layout") == "thb", config.get_int("chunk"),
                              config.get("reserve") == "recompute"});
}

}  // namespace

const Variant& pointwise_variant() {
  static const Variant variant{
      .name = "pointwise",
      .backend = "cpu",
      .help = "products of a BLAS, all gate arithmetic in one kernel",
      .kernel_hash = RNNTUNE_HASH_POINTWISE,
      .why_not = why_not_blas,
      .parameters = parameters,
      .constraints = constraints(),
      .built_in = built_in,
      .make = make,
  };
  return variant;
}

}  // namespace rnntune::cpu
