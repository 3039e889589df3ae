// SPDX-License-Identifier: Apache-2.0
// Backward-data loops of the `cell` plan: from the last layer to the first; in a layer the
// recurrence backwards in time, then dx as one GEMM over all rows. The gates in memory become the
// gradients of the pre-activations, in place.
#include <algorithm>

#include "cpu/cell_plan.hpp"

namespace rnntune::cpu {
namespace {

constexpr std::int64_t kRowBlock =
    96;  // rows of dx per pass over the weights: their dG stays in L2

}  // namespace

Status CellPlan::backward_data(Extent extent, const BackwardData& args, const PlanBuffers& buffers,
                               Stream) {
  const Call call{extent, buffers, true};
  float* zeros = zeros_.in(buffers.workspace);
  if (args.h_0 == nullptr) std::fill_n(zeros, extent.batch * problem_.hidden, 0.0f);
  run_team(choice_.threads, [&](const Member& me) {
    for (std::size_t l = layers_.size(); l-- > 0;) {
      Tensors t = tensors(call, l, args.x, const_cast<float*>(args.y));  // read only here
      const auto state = static_cast<std::int64_t>(l) * extent.batch * problem_.hidden;
      t.h_0 = args.h_0 ? args.h_0 + state : zeros;
      if (choice_.recompute) recompute_layer(me, call, layers_[l], t);
      backward_layer(me, call, l, t, args);
    }
  });
  return {};
}

// The gates and tanh(c) of all time steps, which do not depend on each other once y and c are
// known.
void CellPlan::recompute_layer(const Member& me, const Call& call, const Layer& layer,
                               const Tensors& t) const {
  const std::int64_t v = kernels_.lanes, batch = call.extent.batch, hidden = problem_.hidden;
  const Range rows = split(call.rows(), me.count, me.id);
  const std::int64_t panel = (layer.input + hidden) * 4 * v;
  for (std::int64_t row = rows.begin; row < rows.end;) {
    const bool first_step = row < batch;  // its h' is h_0
    const std::int64_t end = std::min({rows.end, row + kRowBlock, first_step ? batch : rows.end});
    ForwardPanel p;
    p.rows = end - row;
    p.tile_rows = choice_.rows;
    p.epilogue = Epilogue::recompute;
    const float* h = first_step ? t.h_0 + row * hidden : t.y + (row - batch) * hidden;
    for (std::int64_t block = 0; block < blocks_; ++block) {
      const float* w = layer.weights.in(call.buffers.packed) + block * panel;
      p.x = {t.x + row * layer.input, layer.input, w, layer.input};
      p.h = {h, hidden, w + layer.input * 4 * v, hidden};
      p.bias = layer.bias.in(call.buffers.packed) + block * 4 * v;
      p.gates = gates_at(t, block, row);
      p.c = c_at(t, block, row + batch);
      p.tanh_c = tanh_c_at(t, block, row);
      kernels_.forward(p);
    }
    row = end;
  }
  me.wait();
}

void CellPlan::backward_layer(const Member& me, const Call& call, std::size_t l, const Tensors& t,
                              const BackwardData& args) const {
  const Layer& layer = layers_[l];
  const bool top = l + 1 == layers_.size();
  const float* dy = top ? args.dy : dy_.in(call.buffers.workspace);
  const auto state = static_cast<std::int64_t>(l) * call.extent.batch * problem_.hidden;
  const float* dh_n = args.dh_n ? args.dh_n + state : nullptr;
  backward_start(me, call, l, t, args);
  me.wait();
  for (std::int64_t step = call.extent.time - 1; step >= 0; --step) {
    const bool last = step + 1 == call.extent.time;
    backward_step(me, call, layer, t, dy, last ? dh_n : nullptr, step);
    if (!choice_.split_batch) me.wait();
  }
  me.wait();
  // dh_0 = dG(0) W_hh and dc_0, beside dx: both read what the recurrence left.
  if (args.dh_0) {
    BackwardPanel p = backward_panel(t, 0);
    p.rows = call.extent.batch;
    p.ldo = problem_.hidden;
    const Range mine = split(hidden_panels_.count, me.count, me.id);
    for (std::int64_t panel = mine.begin; panel < mine.end; ++panel) {
      const std::int64_t first = hidden_panels_.first(panel) * kernels_.lanes;
      p.w = layer.weights_hh.in(call.buffers.packed) + first * blocks_ * 4 * kernels_.lanes;
      p.vectors = hidden_panels_.width(panel);
      p.columns = problem_.hidden - first;
      p.out = args.dh_0 + state + first;
      kernels_.backward(p);
    }
  }
  const Range mine = my_blocks(me);
  for (std::int64_t block = mine.begin; block < mine.end && args.dc_0; ++block) {
    const std::int64_t unit = block * kernels_.lanes;
    for (std::int64_t row = 0; row < call.extent.batch; ++row)
      std::copy_n(dc_at(call, block) + row * kernels_.lanes, block_units(block),
                  args.dc_0 + state + row * problem_.hidden + unit);
  }
  float* dx = l == 0 ? args.dx : dy_.in(call.buffers.workspace);
  if (dx) backward_input(me, call, layer, t, dx);
  me.wait();
}

void CellPlan::backward_start(const Member& me, const Call& call, std::size_t l, const Tensors&,
                              const BackwardData& args) const {
  const std::int64_t v = kernels_.lanes, batch = call.extent.batch, hidden = problem_.hidden;
  const auto state = static_cast<std::int64_t>(l) * batch * hidden;
  const Range mine = my_blocks(me);
  for (std::int64_t block = mine.begin; block < mine.end; ++block) {
    float* dc = dc_at(call, block);
    const std::int64_t units = args.dc_n ? block_units(block) : 0;
    for (std::int64_t row = 0; row < batch; ++row, dc += v) {
      if (units) std::copy_n(args.dc_n + state + row * hidden + block * v, units, dc);
      std::fill(dc + units, dc + v, 0.0f);
    }
  }
  float* dbias = layers_[l].dbias.in(call.buffers.workspace) + me.id * blocks_ * 4 * v;
  std::fill_n(dbias, blocks_ * 4 * v, 0.0f);
  // Fewer threads than planned: their sums are still read.
  for (int id = me.count; id < choice_.threads && me.id == 0; ++id)
    std::fill_n(dbias + id * blocks_ * 4 * v, blocks_ * 4 * v, 0.0f);
}

// The side that all products of backward share: the gradients of the gates, of all blocks.
BackwardPanel CellPlan::backward_panel(const Tensors& t, std::int64_t row) const {
  BackwardPanel p;
  p.dgates = gates_at(t, 0, row);
  p.block_stride = gate_rows_ * 4 * kernels_.lanes;
  p.blocks = blocks_;
  p.last_units = block_units(blocks_ - 1);
  return p;
}

// dh = dG(step + 1) W_hh + dy (+ dh_n), and the cell backwards, panel by panel.
void CellPlan::backward_step(const Member& me, const Call& call, const Layer& layer,
                             const Tensors& t, const float* dy, const float* dh_n,
                             std::int64_t step) const {
  const std::int64_t v = kernels_.lanes, batch = call.extent.batch, hidden = problem_.hidden;
  const Range samples = choice_.split_batch ? split(batch, me.count, me.id) : Range{0, batch};
  const Range mine = choice_.split_batch ? Range{0, hidden_panels_.count}
                                         : split(hidden_panels_.count, me.count, me.id);
  if (samples.size() == 0) return;
  const std::int64_t row = step * batch + samples.begin;
  const bool last = step + 1 == call.extent.time;
  const float* weights = layer.weights_hh.in(call.buffers.packed);
  BackwardPanel p = backward_panel(t, row + (last ? 0 : batch));
  if (last) p.blocks = 0;
  p.rows = samples.size();
  BackwardCell& cell = p.cell;
  cell.gates_stride = p.block_stride;
  cell.c_stride = c_rows_ * v;
  cell.tanh_c_stride = gate_rows_ * v;
  cell.dc_stride = problem_.batch * v;
  cell.ldy = cell.ldh = hidden;
  for (std::int64_t panel = mine.begin; panel < mine.end; ++panel) {
    const std::int64_t block = hidden_panels_.first(panel), unit = block * v;
    p.w = weights + unit * blocks_ * 4 * v;
    p.vectors = hidden_panels_.width(panel);
    p.columns = hidden - unit;
    cell.gates = gates_at(t, block, row);
    cell.c_before = c_at(t, block, row);
    cell.tanh_c = tanh_c_at(t, block, row);
    cell.dc = dc_at(call, block) + samples.begin * v;
    cell.dy = dy + row * hidden + unit;
    cell.dh = dh_n ? dh_n + samples.begin * hidden + unit : nullptr;
    cell.dbias = layer.dbias.in(call.buffers.workspace) + (me.id * blocks_ + block) * 4 * v;
    if (choice_.ahead) {
      const std::int64_t next = panel + 1 < mine.end ? panel + 1 : mine.begin;
      p.ahead = {weights + hidden_panels_.first(next) * v * blocks_ * 4 * v,
                 hidden_panels_.width(next) * v * blocks_ * 4 * v};
    }
    kernels_.backward(p);
  }
}

void CellPlan::backward_input(const Member& me, const Call& call, const Layer& layer,
                              const Tensors& t, float* dx) const {
  const std::int64_t v = kernels_.lanes;
  const Panels& panels = layer.input_panels;
  const float* weights = layer.weights_ih.in(call.buffers.packed);
  const Range rows = split(call.rows(), me.count, me.id, kernels_.tile_rows);
  for (std::int64_t row = rows.begin; row < rows.end; row += kRowBlock) {
    BackwardPanel p = backward_panel(t, row);
    p.rows = std::min(kRowBlock, rows.end - row);
    p.ldo = layer.input;
    for (std::int64_t panel = 0; panel < panels.count; ++panel) {
      const std::int64_t first = panels.first(panel) * v;
      p.w = weights + first * blocks_ * 4 * v;
      p.vectors = panels.width(panel);
      p.columns = layer.input - first;
      p.out = dx + row * layer.input + first;
      if (choice_.ahead) {
        const std::int64_t next = panel + 1 < panels.count ? panel + 1 : 0;
        p.ahead = {weights + panels.first(next) * v * blocks_ * 4 * v,
                   panels.width(next) * v * blocks_ * 4 * v};
      }
      kernels_.backward(p);
    }
  }
}

}  // namespace rnntune::cpu
