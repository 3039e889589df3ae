// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "tuner/inspect/inspect_view.hpp"

namespace rnntune::tuner {
namespace {

Json moved_json(const simt::Moved& moved) {
  return {{"count", moved.count}, {"bytes", moved.bytes}};
}

Json extent_json(const gpu::Extent3& e) { return {e.x, e.y, e.z}; }

Json line_json(const simt::MemoryLine& line) {
  return {{"line", line.line},
          {"memory", line.shared ? "shared" : "global"},
          {"access", to_string(line.access)},
          {"requests", line.requests},
          {"bytes", line.bytes},
          {line.shared ? "wavefronts" : "sectors", line.transactions},
          {"least", line.ideal}};
}

Json kernel_json(const simt::RecordedKernel& kernel, const cuda::Compiled* compiled) {
  Json json = {{"file", kernel.kernel.file},         {"kernel", kernel.kernel.expression},
               {"launches", kernel.launches},        {"largest_grid", extent_json(kernel.grid)},
               {"block", extent_json(kernel.block)}, {"dynamic_shared_bytes", kernel.shared_bytes}};
  if (compiled != nullptr) json["resources"] = to_json(*compiled);
  if (!kernel.uncounted.empty()) {
    json["not_counted"] = kernel.uncounted;
    return json;
  }
  json["counted_share"] = kernel.counted_share;
  json["lines"] = Json::array();
  for (const simt::MemoryLine& line : kernel.lines) json["lines"].push_back(line_json(line));
  return json;
}

}  // namespace

Json to_json(const InspectedPlan& plan) {
  Json json = {{"problem", to_string(plan.problem)},
               {"config", encode(plan.choice.config)},
               {"rung", to_string(plan.choice.rung)},
               {"notes", Json::array()}};
  for (const std::string& note : plan.choice.notes) json["notes"].push_back(note);
  json["packed_bytes"] = plan.sizes.packed;
  json["workspace_bytes"] = plan.sizes.workspace;
  json["reserve_bytes"] = plan.sizes.reserve;
  return json;
}

Json to_json(const Inspection& found) {
  const simt::Recording& recording = found.recording;
  Json json = to_json(found.plan);
  json["products_workspace_included"] = found.with_products;
  json["step_flops"] = step_flops(found.plan.problem);
  json["host_calls"] = recording.calls;
  json["graph_launches"] = recording.graphs;
  json["copies"] = moved_json(recording.copies);
  json["fills"] = moved_json(recording.fills);
  json["kernels"] = Json::array();
  for (std::size_t i = 0; i < recording.kernels.size(); ++i) {
    const cuda::Compiled* row = i < found.compiled.size() ? &found.compiled[i] : nullptr;
    json["kernels"].push_back(kernel_json(recording.kernels[i], row));
  }
  if (!found.not_compiled.empty()) json["not_compiled"] = found.not_compiled;
  json["products"] = Json::array();
  for (const simt::RecordedProduct& product : recording.products) {
    const Gemm& g = product.gemm;
    json["products"].push_back({{"m", g.m},
                                {"n", g.n},
                                {"k", g.k},
                                {"transpose_a", g.transpose_a},
                                {"transpose_b", g.transpose_b},
                                {"adds", g.beta != 0},
                                {"count", product.count},
                                {"flops", product.flops()},
                                {"bytes", product.bytes()}});
  }
  return json;
}

Json to_json(const cuda::Compiled& row) {
  Json json = {{"architecture", row.architecture}};
  if (!row.error.empty()) {
    json["error"] = row.error;
    return json;
  }
  json["registers"] = row.usage.registers;
  json["barriers"] = row.usage.barriers;
  json["static_shared_bytes"] = row.usage.static_shared_bytes;
  json["stack_bytes"] = row.usage.stack_bytes;
  json["spill_store_bytes"] = row.usage.spill_store_bytes;
  json["spill_load_bytes"] = row.usage.spill_load_bytes;
  if (row.resident_blocks >= 0) {
    json["resident_blocks"] = row.resident_blocks;
    json["occupancy"] = row.resident_share;
    json["resident_limit"] = row.resident_limit;
  }
  return json;
}

}  // namespace rnntune::tuner
