// SPDX-License-Identifier: Apache-2.0
// The row of the `pointwise` variant in the variant table, and its space.
#include "cuda/pointwise.hpp"

#include "cuda/cuda_variants.hpp"
#include "kernel_hashes.hpp"

namespace rnntune::cuda {
namespace {

// A graph of more nodes than this takes seconds to record and to load.
constexpr std::int64_t kMostNodes = 20000;

std::vector<Parameter> parameters(const Problem& problem, const DeviceInfo&) {
  const std::vector<std::string> orders{"tbh", "thb"}, choices{"0", "1", "2", "3"};
  std::vector<std::string> chunks{"0"}, schedules{"layers"}, sums{"column_sum"}, vectors{"1"};
  for (const std::int64_t steps : {1, 4, 16}) {
    if (steps < problem.time) chunks.push_back(std::to_string(steps));
  }
  if (problem.layers > 1 && problem.time > 1) schedules.push_back("wavefront");
  if (problem.bias != Bias::none) sums.push_back("atomic");
  if (problem.hidden % 4 == 0) vectors.push_back("4");
  return {
      {"forward", "order of the gates in forward: hidden or batch fastest", orders},
      {"data", "order of the gradients that backward_data reads", orders},
      {"weights", "order of the gradients that backward_weights reads", orders},
      {"chunk", "time steps of one input product; 0: all", chunks},
      {"reserve",
       "what backward gets: activated gates, those before the activation, or c to recompute them",
       {"gates", "preactivations", "recompute"}},
      {"schedule", "layer by layer, or at once with each a chunk behind", schedules},
      {"launch", "each piece of work by itself, or all as a CUDA graph", {"eager", "graph"}},
      {"bias_gradient", "column sums, or atomic additions, which are not repeatable", sums},
      {"threads", "of a block of a gate kernel", {"128", "256", "512"}},
      {"vector", "floats that a thread of a gate kernel takes at once", vectors},
      {"step_gemm",
       "algorithm of the products of a time step: 0 is cuBLAS's own choice, n the "
       "n-th of cuBLASLt's heuristics, or of those it has",
       choices},
      {"gemm", "algorithm of the products of many time steps, likewise", choices},
  };
}

// With all products over the whole sequence no layer has a chunk to begin with.
std::string wavefront_needs_chunks(const Problem&, const DeviceInfo&, const Config& config) {
  const bool whole = config.get("chunk") == "0";
  return config.get("schedule") == "wavefront" && whole ? "a wavefront needs chunks" : "";
}

std::string vector_needs_tbh(const Problem&, const DeviceInfo&, const Config& config) {
  const bool vectors = config.get("vector") == "4";
  return vectors && config.get("forward") == "thb" ? "thb is moved float by float" : "";
}

std::string graph_is_small(const Problem& p, const DeviceInfo&, const Config& config) {
  if (config.get("launch") != "graph") return {};
  // A product and a kernel per time step, and what a chunk adds to it.
  const std::int64_t per_step = config.get("chunk") == "1" ? 6 : 3;
  const std::int64_t nodes = p.layers * p.time * per_step;
  if (nodes <= kMostNodes) return {};
  return "a graph of " + std::to_string(nodes) + " nodes, more than " + std::to_string(kMostNodes);
}

Config built_in(const Problem& problem, const DeviceInfo&) {
  return {"pointwise",
          {{"forward", "tbh"},
           {"data", "tbh"},
           {"weights", "tbh"},
           {"chunk", "0"},
           {"reserve", "gates"},
           {"schedule", "layers"},
           {"launch", "eager"},
           {"bias_gradient", "column_sum"},
           {"threads", "128"},
           {"vector", problem.hidden % 4 == 0 ? "4" : "1"},
           {"step_gemm", "0"},
           {"gemm", "0"}}};
}

bool repeatable(const Config& config) { return config.get("bias_gradient") != "atomic"; }

Result<std::unique_ptr<Plan>> make(const Problem& problem, std::shared_ptr<Device> device,
                                   const Config& config) {
  return PointwisePlan::make(problem, std::static_pointer_cast<gpu::GpuDevice>(std::move(device)),
                             PointwiseChoice::from(config));
}

}  // namespace

PointwiseChoice PointwiseChoice::from(const Config& config) {
  PointwiseChoice choice;
  choice.forward_thb = config.get("forward") == "thb";
  choice.data_thb = config.get("data") == "thb";
  choice.weights_thb = config.get("weights") == "thb";
  choice.chunk = config.get_int("chunk");
  if (config.get("reserve") == "preactivations") choice.keep = Keep::preactivations;
  if (config.get("reserve") == "recompute") choice.keep = Keep::recompute;
  choice.wavefront = config.get("schedule") == "wavefront";
  choice.graph = config.get("launch") == "graph";
  choice.atomic_bias = config.get("bias_gradient") == "atomic";
  choice.rows = static_cast<int>(config.get_int("threads") / 32);
  choice.vector = static_cast<int>(config.get_int("vector"));
  choice.step_gemm = static_cast<int>(config.get_int("step_gemm"));
  choice.sequence_gemm = static_cast<int>(config.get_int("gemm"));
  return choice;
}

const Variant& pointwise_variant() {
  static const Variant variant{
      .name = "pointwise",
      .backend = "cuda",
      .help = "products of cuBLAS(Lt), all gate arithmetic of a time step in one kernel",
      .kernel_hash = RNNTUNE_HASH_CUDA_POINTWISE,
      .why_not = why_not_products,
      .parameters = parameters,
      .constraints = {{"schedule", wavefront_needs_chunks},
                      {"vector", vector_needs_tbh},
                      {"launch", graph_is_small}},
      .built_in = built_in,
      .make = make,
      .repeatable = repeatable,
  };
  return variant;
}

}  // namespace rnntune::cuda
