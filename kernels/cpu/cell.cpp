// SPDX-License-Identifier: Apache-2.0
// The `cell` variant: the recurrent GEMM on packed weights with the gate arithmetic in its
// epilogue. Its row, its space and its plan's entry.
//
// FLOPs of a step: 24 * H * (I + H) a row and layer. Bytes: the recurrent weights, 16 * H * H, once
// per row tile and time step from the cache level that holds them, in forward and in backward;
// everything else once per layer.
#include <algorithm>
#include <string>

#include "cpu/cell_plan.hpp"
#include "cpu/cell_thb_plan.hpp"
#include "cpu/cpu_variants.hpp"
#include "cpu/team_space.hpp"
#include "kernel_hashes.hpp"

namespace rnntune::cpu {
namespace {

std::string why_not(const Problem& p, const DeviceInfo&) { return why_not_lstm(p); }

std::vector<Parameter> parameters(const Problem& p, const DeviceInfo& device) {
  std::vector<std::string> chunks{"0", "1"};
  for (const std::int64_t n : {4, 16})
    if (n < p.time) chunks.push_back(std::to_string(n));
  const CellKernels kernels = cell_kernels(device.isa.front());
  std::vector<std::string> rows;
  for (const int n : {kernels.tile_rows, kernels.tile_rows - 1, kernels.tile_rows - 2})
    rows.push_back(std::to_string(n));
  return {
      {"layout", "order of the activations inside: [T,B,H] or [T,H,B]", {"tbh", "thb"}},
      threads_parameter(device),
      split_parameter(),
      {"chunk", "time steps of one input GEMM; 0: all, 1: fused into the recurrence", chunks},
      {"rows", "rows of the forward register tile, layout tbh", rows},
      {"columns",
       "vectors of a panel: of hidden units in backward (tbh), of samples (thb)",
       {"1", "2", "3", "4"}},
      {"ahead", "prefetch of the next panel's weights", {"1", "0"}},
      {"reserve",
       "what backward gets: activated gates, or c to recompute them",
       {"gates", "recompute"}},
  };
}

// Samples in lanes: half a vector of them at least, and no more panels than there are vectors.
std::string layout_needs_samples(const Problem& p, const DeviceInfo& device, const Config& config) {
  if (config.get("layout") != "thb") return {};
  const std::int64_t lanes = cell_thb_kernels(device.isa.front()).lanes;
  if (2 * p.batch < lanes)
    return "B is below half a vector of " + std::to_string(lanes) + " samples";
  if (config.get("split") == "batch" && ceil_div(p.batch, lanes) < config.get_int("threads"))
    return "B has fewer vectors of samples than there are threads";
  return {};
}

std::string rows_belong_to_tbh(const Problem&, const DeviceInfo& device, const Config& config) {
  const CellKernels kernels = cell_kernels(device.isa.front());
  if (config.get("layout") != "thb" || config.get_int("rows") == kernels.tile_rows) return {};
  return "layout thb has register tiles of its own, and " + std::to_string(kernels.tile_rows) +
         " here";
}

std::string columns_fit_samples(const Problem& p, const DeviceInfo& device, const Config& config) {
  if (config.get("layout") != "thb") return {};
  const CellThbKernels kernels = cell_thb_kernels(device.isa.front());
  const std::int64_t columns = config.get_int("columns");
  if (kernels.forward_units[columns] == 0) return "too few registers for a tile of so many vectors";
  if (columns > ceil_div(p.batch, kernels.lanes)) return "B has fewer vectors of samples";
  return {};
}

Config built_in(const Problem& p, const DeviceInfo& device) {
  const int threads = guess_threads(p, device);
  const bool batch = threads > 1 && p.batch >= 4 * threads && p.hidden <= 256;  // not tuned either
  const CellKernels kernels = cell_kernels(device.isa.front());
  return {"cell",
          {{"layout", "tbh"},
           {"threads", std::to_string(threads)},
           {"split", batch ? "batch" : "hidden"},
           {"chunk", "0"},
           {"rows", std::to_string(kernels.tile_rows)},
           {"columns", "2"},
           {"ahead", "1"},
           {"reserve", "gates"}}};
}

Result<std::unique_ptr<Plan>> make(const Problem& problem, std::shared_ptr<Device> device,
                                   const Config& config) {
  CellChoice choice;
  choice.threads = static_cast<int>(config.get_int("threads"));
  choice.split_batch = config.get("split") == "batch";
  choice.chunk = config.get_int("chunk");
  choice.rows = static_cast<int>(config.get_int("rows"));
  choice.columns = static_cast<int>(config.get_int("columns"));
  choice.ahead = config.get("ahead") == "1";
  choice.recompute = config.get("reserve") == "recompute";
  choice.l2_bytes = device->info().l2_bytes;
  const std::string& isa = device->info().isa.front();
  if (config.get("layout") == "thb")
    return CellThbPlan::make(problem, cell_thb_kernels(isa), choice);
  return CellPlan::make(problem, cell_kernels(isa), choice);
}

}  // namespace

const Variant& cell_variant() {
  static const Variant variant{
      .name = "cell",
      .backend = "cpu",
      .help = "recurrent GEMM on packed weights, gate arithmetic in its epilogue",
      .kernel_hash = RNNTUNE_HASH_CELL,
      .why_not = why_not,
      .parameters = parameters,
      .constraints = {split_constraint(),
                      {"layout", layout_needs_samples},
                      {"rows", rows_belong_to_tbh},
                      {"columns", columns_fit_samples}},
      .built_in = built_in,
      .make = make,
  };
  return variant;
}

}  // namespace rnntune::cpu
