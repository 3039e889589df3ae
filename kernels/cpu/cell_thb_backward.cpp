// SPDX-License-Identifier: Apache-2.0
// Backward-data loops of the `cell` plan in layout [T,H,B]: from the last layer to the first; in a
// layer the recurrence backwards in time, then dx as one GEMM over all time steps. The gates in
// memory become the gradients of the pre-activations, in place.
#include <algorithm>
#include <cassert>

#include "cpu/cell_thb_plan.hpp"

namespace rnntune::cpu {

Status CellThbPlan::backward_data(Extent extent, const BackwardData& args,
                                  const PlanBuffers& buffers, Stream) {
  const Call call = call_of(extent, buffers, true);
  run_team(choice_.threads, [&](const Member& me) {
    for (std::size_t l = layers_.size(); l-- > 0;) {
      Tensors t = tensors(call, l, args.x, const_cast<float*>(args.y));  // read only here
      const auto state = static_cast<std::int64_t>(l) * extent.batch * problem_.hidden;
      t.h_0 = args.h_0 ? args.h_0 + state : nullptr;
      if (choice_.recompute) {
        gates_of(me, call, layers_[l], t, segments(me, call, {0, extent.time}), true);
        me.wait();
      }
      backward_layer(me, call, l, t, args);
    }
  });
  return {};
}

void CellThbPlan::backward_layer(const Member& me, const Call& call, std::size_t l,
                                 const Tensors& t, const BackwardData& args) const {
  const Layer& layer = layers_[l];
  const std::int64_t hidden = problem_.hidden, outputs = call.extent.batch * hidden;
  const auto state = static_cast<std::int64_t>(l) * outputs;
  const bool top = l + 1 == layers_.size();
  std::byte* workspace = call.buffers.workspace;
  const Lanes dc{dc_.in(workspace), hidden, 1}, dh{dh_.in(workspace), hidden, 1};
  const Lanes dy = top ? Lanes{dy_.in(workspace), hidden, 1}
                       : Lanes{inner_dy_.in(workspace), hidden, call.extent.time};
  const Share mine = share(me, call, hidden_);
  state_in(call, mine, args.dc_n ? args.dc_n + state : nullptr, dc, 0);
  if (args.dh_n) state_in(call, mine, args.dh_n + state, dh, 0);
  for (std::int64_t step = call.extent.time - 1; step >= 0; --step) {
    const bool last = step + 1 == call.extent.time;
    if (top) state_in(call, mine, args.dy + step * outputs, dy, step);
    backward_step(call, layer, t, mine, dy, last && args.dh_n ? dh.base : nullptr, step);
    if (!choice_.split_batch) me.wait();
  }
  me.wait();
  // dh_0 = dG(0) W_hh and dc_0, beside dx: both read what the recurrence left.
  if (args.dh_0) {
    backward_state(call, layer, t, mine);
    state_out(call, mine, dh, 0, args.dh_0 + state);
  }
  if (args.dc_0) state_out(call, mine, dc, 0, args.dc_0 + state);
  if (l > 0 || args.dx) backward_input(me, call, layer, t, l == 0 ? args.dx : nullptr);
  me.wait();
}

// dh = dG(step + 1) W_hh + dy (+ dh_n), and the cell backwards, tile by tile.
void CellThbPlan::backward_step(const Call& call, const Layer& layer, const Tensors& t,
                                const Share& mine, const Lanes& dy, const float* dh_n,
                                std::int64_t step) const {
  const std::int64_t hidden = problem_.hidden, depth = 4 * hidden;
  const bool last = step + 1 == call.extent.time;
  const std::int64_t block = block_panels(depth);
  const float* weights = layer.weights_hh.in(call.buffers.packed);
  const float* dgates = last ? nullptr : slot(call, t.gates, step + 1);
  float* gates = slot(call, t.gates, step);
  const float* c_before = slot(call, t.c, step);
  const float* tanh_c = slot(call, t.tanh_c, step);
  const float* dy_step = slot(call, dy, step);
  float* dc = dc_.in(call.buffers.workspace);
  ThbBackward p;
  p.depth = last ? 0 : depth;
  for (std::int64_t first = mine.panels.begin; first < mine.panels.end; first += block) {
    const std::int64_t end = std::min(first + block, mine.panels.end);
    for (std::int64_t tile = mine.tiles.begin; tile < mine.tiles.end; ++tile) {
      const std::int64_t unit = hidden_.first(tile);
      const std::int64_t next = tile + 1 < mine.tiles.end ? tile + 1 : mine.tiles.begin;
      AheadSlices ahead(choice_.ahead, end - first, weights + hidden_.first(next) * depth,
                        hidden_.width(next) * depth);
      p.w = weights + unit * depth;
      p.units = hidden_.width(tile);
      for (std::int64_t i = first; i < end; ++i) {
        const Panel panel = panel_of(call, i);
        p.vectors = panel.vectors;
        p.dgates = panel.at(dgates, depth);
        p.start = panel.at(dh_n, hidden, unit);
        p.gates = panel.at(gates, depth, 4 * unit);
        p.c_before = panel.at(c_before, hidden, unit);
        p.tanh_c = panel.at(tanh_c, hidden, unit);
        p.dc = panel.at(dc, hidden, unit);
        p.dy = panel.at(dy_step, hidden, unit);
        p.ahead = ahead.next();
        kernels_.backward(p);
      }
    }
  }
}

// dG(0) W_hh to dh_.
void CellThbPlan::backward_state(const Call& call, const Layer& layer, const Tensors& t,
                                 const Share& mine) const {
  const std::int64_t hidden = problem_.hidden, depth = 4 * hidden;
  const float* dgates = slot(call, t.gates, 0);
  ThbBackward p;
  p.depth = depth;
  for (std::int64_t i = mine.panels.begin; i < mine.panels.end; ++i) {
    const Panel panel = panel_of(call, i);
    p.vectors = panel.vectors;
    p.dgates = panel.at(dgates, depth);
    for (std::int64_t tile = mine.tiles.begin; tile < mine.tiles.end; ++tile) {
      const std::int64_t unit = hidden_.first(tile);
      p.w = layer.weights_hh.in(call.buffers.packed) + unit * depth;
      p.units = hidden_.width(tile);
      p.out = panel.at(dh_.in(call.buffers.workspace), hidden, unit);
      kernels_.backward(p);
    }
  }
}

// dx of all time steps: the first layer's to the caller's rows, another's to the layer below.
void CellThbPlan::backward_input(const Member& me, const Call& call, const Layer& layer,
                                 const Tensors& t, float* dx_rows) const {
  const std::int64_t depth = 4 * problem_.hidden, input = layer.input;
  const std::int64_t block = block_panels(depth);
  assert(!dx_rows || block * input * panel_vectors_ * kernels_.lanes <= scratch_floats_);
  const Lanes dx{inner_dy_.in(call.buffers.workspace), input, call.extent.time};
  const float* weights = layer.weights_ih.in(call.buffers.packed);
  const Segments mine = segments(me, call, {0, call.extent.time});
  for (std::int64_t first = mine.range.begin; first < mine.range.end; first += block) {
    const std::int64_t count = std::min(block, mine.range.end - first);
    Panel panels[kBlockPanels];
    const float* dgates[kBlockPanels];
    float* out[kBlockPanels];
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t step = mine.step(first + i);
      panels[i] = panel_of(call, mine.panel(first + i));
      dgates[i] = panels[i].at(slot(call, t.gates, step), depth);
      out[i] = dx_rows ? scratch(me, call) + i * input * panel_vectors_ * kernels_.lanes
                       : panels[i].at(slot(call, dx, step), input);
    }
    for (std::int64_t tile = 0; tile < layer.inputs.count; ++tile) {
      const std::int64_t unit = layer.inputs.first(tile);
      const std::int64_t next = tile + 1 < layer.inputs.count ? tile + 1 : 0;
      AheadSlices ahead(choice_.ahead, count, weights + layer.inputs.first(next) * depth,
                        layer.inputs.width(next) * depth);
      ThbBackward p;
      p.w = weights + unit * depth;
      p.depth = depth;
      p.units = layer.inputs.width(tile);
      for (std::int64_t i = 0; i < count; ++i) {
        p.vectors = panels[i].vectors;
        p.dgates = dgates[i];
        p.out = out[i] + unit * panels[i].width;
        p.ahead = ahead.next();
        kernels_.backward(p);
      }
    }
    for (std::int64_t i = 0; i < count && dx_rows; ++i)
      from_lanes(panels[i], out[i], input, {0, input},
                 dx_rows + mine.step(first + i) * call.extent.batch * input);
  }
}

}  // namespace rnntune::cpu
