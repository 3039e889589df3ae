// SPDX-License-Identifier: Apache-2.0
// Sizes, packing and transpositions of the `cell` plan in layout [T,H,B]; cell_thb_forward.cpp,
// cell_thb_backward.cpp and cell_thb_weights.cpp hold its loops.
#include "cpu/cell_thb_plan.hpp"

#include <algorithm>

namespace rnntune::cpu {
namespace {

constexpr std::int64_t kAssumedL2 = 512 * 1024;  // where the system does not tell

}  // namespace

Result<std::unique_ptr<Plan>> CellThbPlan::make(const Problem& problem,
                                                const CellThbKernels& kernels,
                                                const CellChoice& choice) {
  std::unique_ptr<CellThbPlan> plan(new CellThbPlan(problem, kernels, choice));
  const PlanMemory& memory = plan->memory_;
  return memory.check(problem, std::move(plan));
}

CellThbPlan::CellThbPlan(const Problem& problem, const CellThbKernels& kernels,
                         const CellChoice& choice)
    : problem_(problem), kernels_(kernels), choice_(choice), panel_vectors_(choice.columns) {
  const std::int64_t h = problem.hidden;
  const Panels panels = panels_of(problem.batch);
  panel_vectors_ = panels.widest();
  padded_ = panels.vectors * kernels.lanes;
  units_ = {h, ceil_div(h, kernels.forward_units[panel_vectors_])};
  hidden_ = {h, ceil_div(h, kernels.backward_units[panel_vectors_])};
  place_layers();
  place_workspace();
}

void CellThbPlan::place_layers() {
  const std::int64_t h = problem_.hidden;
  const Checked units = Checked(h) * problem_.time * padded_;
  for (std::int64_t l = 0; l < problem_.layers; ++l) {
    Layer layer;
    layer.input = problem_.layer_input(l);
    layer.inputs = {layer.input, ceil_div(layer.input, kernels_.backward_units[panel_vectors_])};
    const Checked rows = Checked(h) * 4;
    layer.weights = memory_.packed.add(rows * (Checked(layer.input) + h));
    layer.bias = memory_.packed.add(rows);
    layer.weights_hh = memory_.packed.add(rows * h);
    layer.weights_ih = memory_.packed.add(rows * layer.input);
    Arena& gates = choice_.recompute ? memory_.workspace : memory_.reserve;
    layer.gates = gates.add(units * 4);
    // Recomputed, tanh(c) is needed in one layer at a time.
    const bool shared = choice_.recompute && l > 0;
    layer.tanh_c = shared ? layers_[0].tanh_c : gates.add(units);
    layer.c = memory_.reserve.add(units + Checked(h) * padded_);
    if (l + 1 < problem_.layers) layer.h = memory_.reserve.add(units + Checked(h) * padded_);
    layers_.push_back(layer);
  }
}

void CellThbPlan::place_workspace() {
  const std::int64_t h = problem_.hidden, input = problem_.input;
  const Checked state = Checked(h) * padded_;
  top_h_ = memory_.workspace.add(state * 2);
  if (choice_.chunk == 1) x_ = memory_.workspace.add(Checked(input) * padded_ * 2);
  dc_ = memory_.workspace.add(state);
  dh_ = memory_.workspace.add(state);
  dy_ = memory_.workspace.add(state);
  if (problem_.layers > 1) inner_dy_ = memory_.workspace.add(state * problem_.time);

  const Checked width = Checked(panel_vectors_) * kernels_.lanes;
  const auto block = [&](std::int64_t depth, Checked floats) {
    return (floats * block_panels(depth) * width).value();
  };
  scratch_floats_ = std::max(block(input, input), block(4 * h, input));
  for (const Layer& layer : layers_) {  // x and h of a recomputed layer
    const std::int64_t depth = layer.input + h;
    if (choice_.recompute) scratch_floats_ = std::max(scratch_floats_, block(depth, depth));
  }
  scratch_floats_ = (Checked(scratch_floats_) + 15).value() / 16 * 16;
  scratch_ = memory_.workspace.add(Checked(scratch_floats_) * choice_.threads);
  const std::int64_t v = kernels_.lanes, columns = ceil_div(std::max(input, h), v) * v;
  pack_floats_ = (Checked(std::max(kPackRows, width.value())) * columns).value();
  pack_ = memory_.workspace.add(Checked(pack_floats_) * choice_.threads);

  infer_chunk_ = std::min(problem_.time, choice_.chunk == 0 ? kInferenceChunk : choice_.chunk);
  infer_gates_ = memory_.workspace.add(state * 4 * infer_chunk_);
  infer_c_ = memory_.workspace.add(state);
  for (std::int64_t i = 0; i < std::min<std::int64_t>(2, problem_.layers - 1); ++i)
    infer_h_[i] = memory_.workspace.add(state * (Checked(problem_.time) + 1));
}

// Threads that share samples get as many panels each.
Panels CellThbPlan::panels_of(std::int64_t samples) const {
  const std::int64_t vectors = ceil_div(samples, kernels_.lanes);
  std::int64_t count = ceil_div(vectors, panel_vectors_);
  if (choice_.split_batch) count = ceil_div(count, choice_.threads) * choice_.threads;
  return {vectors, std::min(count, vectors)};
}

CellThbPlan::Call CellThbPlan::call_of(Extent extent, const PlanBuffers& buffers,
                                       bool training) const {
  return {extent, buffers, training, panels_of(extent.batch)};
}

// Panels that meet the same weights before the next weights come: their operands, of `depth` rows,
// fill half of L2.
std::int64_t CellThbPlan::block_panels(std::int64_t depth) const {
  const std::int64_t l2 = choice_.l2_bytes > 0 ? choice_.l2_bytes : kAssumedL2;
  const std::int64_t panel = depth * panel_vectors_ * kernels_.lanes * 4;
  return std::clamp<std::int64_t>(l2 / 2 / panel, 1, kBlockPanels);
}

CellThbPlan::Share CellThbPlan::share(const Member& me, const Call& call,
                                      const Panels& tiles) const {
  const Range all{0, tiles.count};
  const Range mine = choice_.split_batch ? all : split(tiles.count, me.count, me.id);
  const Range panels{0, call.panels.count};
  return {mine,
          {tiles.first(mine.begin), tiles.first(mine.end)},
          choice_.split_batch ? split(panels.end, me.count, me.id) : panels};
}

CellThbPlan::Segments CellThbPlan::segments(const Member& me, const Call& call, Range steps) const {
  const Range panels = share(me, call, units_).panels;
  const std::int64_t count = steps.size() * panels.size();
  return {panels, choice_.split_batch ? Range{0, count} : split(count, me.count, me.id),
          steps.begin};
}

void CellThbPlan::to_lanes(const Panel& panel, const float* rows, std::int64_t width, Range columns,
                           float* lanes) const {
  kernels_.transpose({.from = rows ? rows + panel.sample * width + columns.begin : nullptr,
                      .from_stride = width,
                      .rows = panel.samples,
                      .columns = columns.size(),
                      .to = lanes + columns.begin * panel.width,
                      .to_stride = panel.width,
                      .padded = panel.width});
}

void CellThbPlan::from_lanes(const Panel& panel, const float* lanes, std::int64_t width,
                             Range columns, float* rows) const {
  kernels_.transpose({.from = lanes + columns.begin * panel.width,
                      .from_stride = panel.width,
                      .rows = columns.size(),
                      .columns = panel.samples,
                      .to = rows + panel.sample * width + columns.begin,
                      .to_stride = width});
}

void CellThbPlan::state_in(const Call& call, const Share& mine, const float* rows,
                           const Lanes& lanes, std::int64_t step) const {
  float* to = slot(call, lanes, step);
  for (std::int64_t i = mine.panels.begin; i < mine.panels.end; ++i) {
    const Panel panel = panel_of(call, i);
    to_lanes(panel, rows, lanes.rows, mine.units, panel.at(to, lanes.rows));
  }
}

void CellThbPlan::state_out(const Call& call, const Share& mine, const Lanes& lanes,
                            std::int64_t step, float* rows) const {
  const float* from = slot(call, lanes, step);
  for (std::int64_t i = mine.panels.begin; i < mine.panels.end; ++i) {
    const Panel panel = panel_of(call, i);
    from_lanes(panel, panel.at(from, lanes.rows), lanes.rows, mine.units, rows);
  }
}

Status CellThbPlan::pack(const LayerWeights* layers, const PlanBuffers& buffers, Stream) {
  run_team(choice_.threads, [&](const Member& me) {
    const Range tiles = split(units_.count, me.count, me.id);
    const Range units{units_.first(tiles.begin), units_.first(tiles.end)};
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      const LayerWeights& w = layers[l];
      const ThbWeightMatrix ih{w.weight_ih, problem_.hidden, layer.input};
      const ThbWeightMatrix hh{w.weight_hh, problem_.hidden, problem_.hidden};
      for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
        const std::int64_t first = units_.first(tile), count = units_.width(tile);
        float* to = layer.weights.in(buffers.packed) + first * 4 * (ih.depth + hh.depth);
        kernels_.pack_forward({ih, first, count, to});
        kernels_.pack_forward({hh, first, count, to + count * 4 * ih.depth});
      }
      pack_bias(layer, w, buffers.packed, units);
      kernels_.pack_backward(
          {hh, units.begin, units.end, hidden_, layer.weights_hh.in(buffers.packed)});
      kernels_.pack_backward(
          {ih, units.begin, units.end, layer.inputs, layer.weights_ih.in(buffers.packed)});
    }
  });
  return {};
}

void CellThbPlan::pack_bias(const Layer& layer, const LayerWeights& w, std::byte* packed,
                            Range units) const {
  float* bias = layer.bias.in(packed) + units.begin * 4;
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    for (std::int64_t gate = 0; gate < 4; ++gate) {
      const std::int64_t at = gate * problem_.hidden + unit;
      float sum = problem_.bias == Bias::none ? 0.0f : w.bias_ih[at];
      if (problem_.bias == Bias::two) sum += w.bias_hh[at];
      *bias++ = sum;
    }
  }
}

}  // namespace rnntune::cpu
