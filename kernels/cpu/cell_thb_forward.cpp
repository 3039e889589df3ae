// SPDX-License-Identifier: Apache-2.0
// Forward loops of the `cell` plan in layout [T,H,B]: layer by layer; in a layer the input GEMM of
// a chunk of time steps, then its time steps. Threads share units and meet after every time step,
// or share panels of samples and never meet inside a chunk.
#include <algorithm>
#include <cassert>

#include "cpu/cell_thb_plan.hpp"

namespace rnntune::cpu {

CellThbPlan::Tensors CellThbPlan::tensors(const Call& call, std::size_t l, const float* x,
                                          float* y) const {
  const Layer& layer = layers_[l];
  const PlanBuffers& b = call.buffers;
  const std::int64_t time = call.extent.time, h = problem_.hidden;
  const auto hidden = [&](std::size_t i) {
    if (i + 1 == layers_.size()) return Lanes{top_h_.in(b.workspace), h, 2};
    return Lanes{call.training ? layers_[i].h.in(b.reserve) : infer_h_[i % 2].in(b.workspace), h,
                 time + 1};
  };
  Tensors t;
  if (l == 0) {
    t.x_rows = x;
    if (choice_.chunk == 1) t.x = {x_.in(b.workspace), layer.input, 2};
  } else {
    t.x = hidden(l - 1);
  }
  if (l + 1 == layers_.size()) t.y_rows = y;
  t.h = hidden(l);
  if (!call.training) {
    t.gates = {infer_gates_.in(b.workspace), 4 * h, infer_chunk_};
    t.c = {infer_c_.in(b.workspace), h, 1};
    return t;
  }
  std::byte* gates = choice_.recompute ? b.workspace : b.reserve;
  t.gates = {layer.gates.in(gates), 4 * h, time};
  t.tanh_c = {layer.tanh_c.in(gates), h, time};
  t.c = {layer.c.in(b.reserve), h, time + 1};
  return t;
}

Status CellThbPlan::forward(Mode mode, Extent extent, const Forward& args,
                            const PlanBuffers& buffers, Stream) {
  const Call call = call_of(extent, buffers, mode == Mode::training);
  run_team(choice_.threads, [&](const Member& me) {
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      Tensors t = tensors(call, l, args.x, args.y);
      const auto state = static_cast<std::int64_t>(l) * extent.batch * problem_.hidden;
      t.h_0 = args.h_0 ? args.h_0 + state : nullptr;
      t.c_0 = args.c_0 ? args.c_0 + state : nullptr;
      forward_layer(me, call, l, t, args);
    }
  });
  return {};
}

void CellThbPlan::forward_layer(const Member& me, const Call& call, std::size_t l, const Tensors& t,
                                const Forward& args) const {
  const Layer& layer = layers_[l];
  const std::int64_t time = call.extent.time;
  const std::int64_t chunk = !call.training ? infer_chunk_ : choice_.chunk ? choice_.chunk : time;
  const bool transposed_ahead = choice_.chunk == 1 && t.x_rows;
  const Share mine = share(me, call, units_);
  state_in(call, mine, t.h_0, t.h, 0);
  state_in(call, mine, t.c_0, t.c, 0);
  if (transposed_ahead) next_input(me, call, t, 0);
  for (std::int64_t start = 0; start < time; start += chunk) {
    const std::int64_t end = std::min(time, start + chunk);
    me.wait();  // the state, or the gates that the last chunk of an inference used, are ready
    if (choice_.chunk != 1) {
      gates_of(me, call, layer, t, segments(me, call, {start, end}), false);
      me.wait();
    }
    for (std::int64_t step = start; step < end; ++step) {
      recurrence(call, layer, t, mine, step);
      if (transposed_ahead && step + 1 < time) next_input(me, call, t, step + 1);
      if (!choice_.split_batch) me.wait();
    }
  }
  me.wait();
  // Of the same share: the next layer starts on the same c.
  const auto state = static_cast<std::int64_t>(l) * call.extent.batch * problem_.hidden;
  if (args.h_n) state_out(call, mine, t.h, time, args.h_n + state);
  if (args.c_n) state_out(call, mine, t.c, time, args.c_n + state);
}

// x of a time step, one time step before it is used: threads meet in between.
void CellThbPlan::next_input(const Member& me, const Call& call, const Tensors& t,
                             std::int64_t step) const {
  const std::int64_t input = t.x.rows;
  Share mine = share(me, call, units_);
  mine.units =
      choice_.split_batch ? Range{0, input} : split(input, me.count, me.id, kernels_.lanes);
  state_in(call, mine, t.x_rows + step * call.extent.batch * input, t.x, step + 1);
}

// The panel of x at a time step: where it is, or transposed to `space`.
const float* CellThbPlan::input_of(const Call& call, const Layer& layer, const Tensors& t,
                                   std::int64_t step, const Panel& panel, float* space) const {
  if (t.x_rows == nullptr) return panel.at(slot(call, t.x, step + 1), layer.input);
  const float* rows = t.x_rows + step * call.extent.batch * layer.input;
  to_lanes(panel, rows, layer.input, {0, layer.input}, space);
  return space;
}

// The same of h before the time step.
const float* CellThbPlan::hidden_of(const Call& call, const Tensors& t, std::int64_t step,
                                    const Panel& panel, float* space) const {
  const std::int64_t hidden = problem_.hidden;
  if (t.y_rows == nullptr) return panel.at(slot(call, t.h, step), hidden);
  const float* rows = step == 0 ? t.h_0 : t.y_rows + (step - 1) * call.extent.batch * hidden;
  to_lanes(panel, rows, hidden, {0, hidden}, space);
  return space;
}

// Pre-activations without the recurrent part; or, once y and c are known, the gates and tanh(c) of
// all time steps, which no longer depend on each other.
void CellThbPlan::gates_of(const Member& me, const Call& call, const Layer& layer, const Tensors& t,
                           const Segments& mine, bool recompute) const {
  const std::int64_t hidden = problem_.hidden, depth = layer.input + hidden;
  const std::int64_t block = block_panels(recompute ? depth : layer.input);
  const std::int64_t space = panel_vectors_ * kernels_.lanes * (recompute ? depth : layer.input);
  assert((t.x_rows == nullptr && !recompute) || block * space <= scratch_floats_);
  const float* weights = layer.weights.in(call.buffers.packed);
  for (std::int64_t first = mine.range.begin; first < mine.range.end; first += block) {
    const std::int64_t count = std::min(block, mine.range.end - first);
    Panel panels[kBlockPanels];
    ThbForward tiles[kBlockPanels];
    float *gates[kBlockPanels], *c[kBlockPanels] = {}, *tanh_c[kBlockPanels] = {};
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t step = mine.step(first + i);
      panels[i] = panel_of(call, mine.panel(first + i));
      float* own = scratch(me, call) + i * space;
      tiles[i].x.b = input_of(call, layer, t, step, panels[i], own);
      tiles[i].vectors = panels[i].vectors;
      gates[i] = panels[i].at(slot(call, t.gates, step), 4 * hidden);
      if (!recompute) continue;
      tiles[i].h.b = hidden_of(call, t, step, panels[i], own + layer.input * panels[i].width);
      tiles[i].epilogue = Epilogue::recompute;
      c[i] = panels[i].at(slot(call, t.c, step + 1), hidden);
      tanh_c[i] = panels[i].at(slot(call, t.tanh_c, step), hidden);
    }
    for (std::int64_t tile = 0; tile < units_.count; ++tile) {
      const std::int64_t unit = units_.first(tile);
      const float* w = weights + unit * 4 * depth;
      const std::int64_t next = tile + 1 < units_.count ? tile + 1 : 0;
      AheadSlices ahead(choice_.ahead, count, weights + units_.first(next) * 4 * depth,
                        units_.width(next) * 4 * (recompute ? depth : layer.input));
      for (std::int64_t i = 0; i < count; ++i) {
        ThbForward& p = tiles[i];
        p.ahead = ahead.next();
        p.units = units_.width(tile);
        p.x = {w, p.x.b, layer.input};
        p.h = {w + p.units * 4 * layer.input, p.h.b, recompute ? hidden : 0};
        p.bias = layer.bias.in(call.buffers.packed) + unit * 4;
        p.gates = gates[i] + unit * 4 * panels[i].width;
        if (recompute) {
          p.c = c[i] + unit * panels[i].width;
          p.tanh_c = tanh_c[i] + unit * panels[i].width;
        }
        kernels_.forward(p);
      }
    }
  }
}

void CellThbPlan::recurrence(const Call& call, const Layer& layer, const Tensors& t,
                             const Share& mine, std::int64_t step) const {
  const std::int64_t hidden = problem_.hidden, depth = layer.input + hidden;
  const bool fused = choice_.chunk == 1;
  const std::int64_t unused = fused ? 0 : layer.input;  // leading weights of a tile
  const std::int64_t block = block_panels(depth - unused);
  const float* weights = layer.weights.in(call.buffers.packed);
  const float* bias = layer.bias.in(call.buffers.packed);
  const float* x = fused ? slot(call, t.x, step + 1) : nullptr;
  const float* h = slot(call, t.h, step);
  float* h_out = slot(call, t.h, step + 1);
  float* gates = slot(call, t.gates, step);
  const float* c_before = slot(call, t.c, step);
  float* c = slot(call, t.c, step + 1);
  float* tanh_c = call.training ? slot(call, t.tanh_c, step) : nullptr;
  ThbForward p;
  p.epilogue = call.training ? Epilogue::train : Epilogue::infer;
  for (std::int64_t first = mine.panels.begin; first < mine.panels.end; first += block) {
    const std::int64_t end = std::min(first + block, mine.panels.end);
    for (std::int64_t tile = mine.tiles.begin; tile < mine.tiles.end; ++tile) {
      const std::int64_t unit = units_.first(tile);
      const float* w = weights + unit * 4 * depth;
      p.units = units_.width(tile);
      const std::int64_t next = tile + 1 < mine.tiles.end ? tile + 1 : mine.tiles.begin;
      AheadSlices ahead(choice_.ahead, end - first,
                        weights + units_.first(next) * 4 * depth + units_.width(next) * 4 * unused,
                        units_.width(next) * 4 * (depth - unused));
      for (std::int64_t i = first; i < end; ++i) {
        const Panel panel = panel_of(call, i);
        p.vectors = panel.vectors;
        if (fused) {
          p.x = {w, panel.at(x, layer.input), layer.input};
          p.bias = bias + unit * 4;
        }
        p.h = {w + p.units * 4 * layer.input, panel.at(h, hidden), hidden};
        p.gates = panel.at(gates, 4 * hidden, 4 * unit);
        p.c_before = panel.at(c_before, hidden, unit);
        p.c = panel.at(c, hidden, unit);
        p.tanh_c = panel.at(tanh_c, hidden, unit);
        p.h_out = panel.at(h_out, hidden, unit);
        p.ahead = ahead.next();
        kernels_.forward(p);
      }
    }
  }
  if (t.y_rows) state_out(call, mine, t.h, step + 1, t.y_rows + step * call.extent.batch * hidden);
}

}  // namespace rnntune::cpu
