// SPDX-License-Identifier: Apache-2.0
// Sizes and packing of the `cell` plan; cell_forward.cpp, cell_backward.cpp and cell_weights.cpp
// hold its loops.
#include "cpu/cell_plan.hpp"

#include <algorithm>
#include <cstring>

namespace rnntune::cpu {

Result<std::unique_ptr<Plan>> CellPlan::make(const Problem& problem, const CellKernels& kernels,
                                             const CellChoice& choice) {
  std::unique_ptr<CellPlan> plan(new CellPlan(problem, kernels, choice));
  const PlanMemory& memory = plan->memory_;
  return memory.check(problem, std::move(plan));
}

CellPlan::CellPlan(const Problem& problem, const CellKernels& kernels, const CellChoice& choice)
    : problem_(problem), kernels_(kernels), choice_(choice) {
  const std::int64_t v = kernels.lanes;
  const std::int64_t rows = problem.time * problem.batch;
  blocks_ = ceil_div(problem.hidden, v);
  // Blocks 256 rows apart (16 KiB of gates) would fall into the same cache sets: keep them odd.
  gate_rows_ = rows + (rows % 16 == 0 ? 1 : 0);
  c_rows_ = rows + problem.batch;
  // Threads that share hidden units take equal numbers of panels.
  const std::int64_t sharing = choice.split_batch ? 1 : choice.threads;
  const std::int64_t panels = ceil_div(ceil_div(blocks_, choice.columns), sharing) * sharing;
  hidden_panels_ = {blocks_, std::min(blocks_, panels)};
  place_layers();
  place_workspace();
}

void CellPlan::place_layers() {
  const std::int64_t v = kernels_.lanes;
  const Checked block_gates = Checked(blocks_) * 4 * v;
  for (std::int64_t l = 0; l < problem_.layers; ++l) {
    Layer layer;
    layer.input = problem_.layer_input(l);
    const std::int64_t vectors = ceil_div(layer.input, v);
    layer.input_panels = {vectors, ceil_div(vectors, choice_.columns)};
    layer.weights = memory_.packed.add(block_gates * (Checked(layer.input) + problem_.hidden));
    layer.bias = memory_.packed.add(block_gates);
    layer.weights_hh = memory_.packed.add(block_gates * blocks_ * v);
    layer.weights_ih = memory_.packed.add(block_gates * vectors * v);
    Arena& gates = choice_.recompute ? memory_.workspace : memory_.reserve;
    layer.gates = gates.add(block_gates * gate_rows_);
    // Recomputed, tanh(c) is needed in one layer at a time.
    const bool shared = choice_.recompute && l > 0;
    layer.tanh_c = shared ? layers_[0].tanh_c : gates.add(Checked(blocks_) * gate_rows_ * v);
    layer.c = memory_.reserve.add(Checked(blocks_) * c_rows_ * v);
    if (l + 1 < problem_.layers)
      layer.y = memory_.reserve.add(Checked(problem_.time) * problem_.batch * problem_.hidden);
    layer.dbias = memory_.workspace.add(block_gates * choice_.threads);
    layers_.push_back(layer);
  }
}

void CellPlan::place_workspace() {
  const std::int64_t v = kernels_.lanes;
  const Checked outputs = Checked(problem_.time) * problem_.batch * problem_.hidden;
  zeros_ = memory_.workspace.add(Checked(problem_.batch) * problem_.hidden);
  dc_ = memory_.workspace.add(Checked(blocks_) * problem_.batch * v);
  if (problem_.layers > 1) dy_ = memory_.workspace.add(outputs);
  const std::int64_t widest = std::max(problem_.input, problem_.hidden);
  pack_floats_ = (Checked(kPackRows) * (ceil_div(widest, v) * v)).value();
  pack_ = memory_.workspace.add(Checked(pack_floats_) * choice_.threads);

  infer_chunk_ = std::min(problem_.time, choice_.chunk == 0 ? kInferenceChunk : choice_.chunk);
  infer_gates_ = memory_.workspace.add(Checked(blocks_) * infer_chunk_ * problem_.batch * 4 * v);
  infer_c_ = memory_.workspace.add(Checked(blocks_) * problem_.batch * v);
  for (std::int64_t i = 0; i < std::min<std::int64_t>(2, problem_.layers - 1); ++i)
    infer_y_[i] = memory_.workspace.add(outputs);
}

std::int64_t CellPlan::block_units(std::int64_t block) const {
  return std::min(kernels_.lanes, problem_.hidden - block * kernels_.lanes);
}

Status CellPlan::pack(const LayerWeights* layers, const PlanBuffers& buffers, Stream) {
  run_team(choice_.threads, [&](const Member& me) {
    const Range mine = my_blocks(me);
    for (std::size_t l = 0; l < layers_.size(); ++l)
      for (std::int64_t block = mine.begin; block < mine.end; ++block)
        pack_block(layers_[l], layers[l], buffers.packed, block);
  });
  return {};
}

void CellPlan::pack_block(const Layer& layer, const LayerWeights& w, std::byte* packed,
                          std::int64_t block) const {
  const std::int64_t v = kernels_.lanes, units = block_units(block), unit = block * v;
  float* forward = layer.weights.in(packed) + block * (layer.input + problem_.hidden) * 4 * v;
  kernels_.pack({.w = w.weight_ih + unit * layer.input,
                 .gate_stride = problem_.hidden * layer.input,
                 .depth = layer.input,
                 .units = units,
                 .packed = forward});
  kernels_.pack({.w = w.weight_hh + unit * problem_.hidden,
                 .gate_stride = problem_.hidden * problem_.hidden,
                 .depth = problem_.hidden,
                 .units = units,
                 .packed = forward + layer.input * 4 * v});
  float* bias = layer.bias.in(packed) + block * 4 * v;
  for (std::int64_t gate = 0; gate < 4; ++gate) {
    for (std::int64_t i = 0; i < v; ++i) {
      const std::int64_t at = gate * problem_.hidden + unit + i;
      float sum = 0;
      if (i < units && problem_.bias != Bias::none) sum = w.bias_ih[at];
      if (i < units && problem_.bias == Bias::two) sum += w.bias_hh[at];
      bias[gate * v + i] = sum;
    }
  }
  pack_panels(w.weight_hh, problem_.hidden, hidden_panels_, layer.weights_hh.in(packed), block);
  pack_panels(w.weight_ih, layer.input, layer.input_panels, layer.weights_ih.in(packed), block);
}

// Rows of w, as they are, into the panels: w [4H, depth] to [panel][blocks*4*V][vectors*V], zeros
// where w ends.
void CellPlan::pack_panels(const float* w, std::int64_t depth, const Panels& panels, float* packed,
                           std::int64_t block) const {
  const std::int64_t v = kernels_.lanes, units = block_units(block);
  for (std::int64_t panel = 0; panel < panels.count; ++panel) {
    const std::int64_t first = panels.first(panel) * v, width = panels.width(panel) * v;
    const std::int64_t valid = std::min(width, depth - first);
    float* to = packed + first * blocks_ * 4 * v + block * 4 * v * width;
    for (std::int64_t row = 0; row < 4 * v; ++row, to += width) {
      const std::int64_t gate = row / v, unit = row % v;
      const std::int64_t count = unit < units ? valid : 0;
      if (count > 0) {
        const float* from = w + (gate * problem_.hidden + block * v + unit) * depth + first;
        std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
      }
      std::fill(to + count, to + width, 0.0f);
    }
  }
}

}  // namespace rnntune::cpu
