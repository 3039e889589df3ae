// SPDX-License-Identifier: Apache-2.0
// Forward loops of the `cell` plan: layer by layer; in a layer the input GEMM of a chunk of time
// steps, then its time steps. Threads share hidden units and meet after every time step, or share
// samples and never meet inside a chunk.
#include <algorithm>

#include "cpu/cell_plan.hpp"

namespace rnntune::cpu {
namespace {

// Rows of one pass of the input GEMM over all panels: x stays in L2 while the weights stream.
constexpr std::int64_t kRowBlock = 96;

}  // namespace

CellPlan::Tensors CellPlan::tensors(const Call& call, std::size_t l, const float* x,
                                    float* y) const {
  const Layer& layer = layers_[l];
  const PlanBuffers& b = call.buffers;
  const std::size_t last = layers_.size() - 1;
  const auto inner = [&](std::size_t i) {
    return call.training ? layers_[i].y.in(b.reserve) : infer_y_[i % 2].in(b.workspace);
  };
  Tensors t;
  t.x = l == 0 ? x : inner(l - 1);
  t.y = l == last ? y : inner(l);
  if (!call.training) {
    t.gates = infer_gates_.in(b.workspace);
    t.c = infer_c_.in(b.workspace);
    return t;
  }
  std::byte* gates = choice_.recompute ? b.workspace : b.reserve;
  t.gates = layer.gates.in(gates);
  t.tanh_c = layer.tanh_c.in(gates);
  t.c = layer.c.in(b.reserve);
  return t;
}

Status CellPlan::forward(Mode mode, Extent extent, const Forward& args, const PlanBuffers& buffers,
                         Stream) {
  const Call call{extent, buffers, mode == Mode::training};
  float* zeros = zeros_.in(buffers.workspace);
  if (args.h_0 == nullptr) std::fill_n(zeros, extent.batch * problem_.hidden, 0.0f);
  run_team(choice_.threads, [&](const Member& me) {
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      Tensors t = tensors(call, l, args.x, args.y);
      const auto state = static_cast<std::int64_t>(l) * extent.batch * problem_.hidden;
      t.h_0 = args.h_0 ? args.h_0 + state : zeros;
      t.c_0 = args.c_0 ? args.c_0 + state : nullptr;
      forward_layer(me, call, l, t, args);
    }
  });
  return {};
}

void CellPlan::forward_layer(const Member& me, const Call& call, std::size_t l, const Tensors& t,
                             const Forward& args) const {
  const Layer& layer = layers_[l];
  const std::int64_t time = call.extent.time, batch = call.extent.batch;
  const std::int64_t chunk = !call.training ? infer_chunk_ : choice_.chunk ? choice_.chunk : time;
  start_state(me, call, t);
  for (std::int64_t start = 0; start < time; start += chunk) {
    const std::int64_t end = std::min(time, start + chunk);
    me.wait();  // the state, or the gates that the last chunk of an inference used, are ready
    if (choice_.chunk != 1) {
      const Range share = split((end - start) * batch, me.count, me.id, kernels_.tile_rows);
      const std::int64_t first = start * batch;
      input_gemm(me, call, layer, t, {first + share.begin, first + share.end});
      me.wait();
    }
    for (std::int64_t step = start; step < end; ++step) {
      recurrence(me, call, layer, t, step, start);
      if (!choice_.split_batch) me.wait();
    }
  }
  me.wait();
  end_state(me, call, l, t, args);
  if (!call.training) me.wait();  // the next layer starts on the same c
}

void CellPlan::start_state(const Member& me, const Call& call, const Tensors& t) const {
  const std::int64_t v = kernels_.lanes;
  const Range mine = my_blocks(me);
  for (std::int64_t block = mine.begin; block < mine.end; ++block) {
    float* c = call.training ? c_at(t, block, 0) : t.c + block * problem_.batch * v;
    const std::int64_t units = t.c_0 ? block_units(block) : 0;
    for (std::int64_t row = 0; row < call.extent.batch; ++row, c += v) {
      std::copy_n(t.c_0 + (t.c_0 ? row * problem_.hidden + block * v : 0), units, c);
      std::fill(c + units, c + v, 0.0f);
    }
  }
}

// Pre-activations of rows [begin, end) of the layer, without the recurrent part; inference keeps
// one chunk of them.
void CellPlan::input_gemm(const Member&, const Call& call, const Layer& layer, const Tensors& t,
                          Range rows) const {
  const std::int64_t v = kernels_.lanes, batch = call.extent.batch;
  const std::int64_t panel = (layer.input + problem_.hidden) * 4 * v;
  const float* weights = layer.weights.in(call.buffers.packed);
  const std::int64_t chunk_rows = infer_chunk_ * batch;
  for (std::int64_t row = rows.begin; row < rows.end; row += kRowBlock) {
    ForwardPanel p;
    p.rows = std::min(kRowBlock, rows.end - row);
    p.tile_rows = choice_.rows;
    for (std::int64_t block = 0; block < blocks_; ++block) {
      const float* w = weights + block * panel;
      p.x = {t.x + row * layer.input, layer.input, w, layer.input};
      p.bias = layer.bias.in(call.buffers.packed) + block * 4 * v;
      const std::int64_t kept = call.training ? row : row % chunk_rows;
      p.gates =
          call.training ? gates_at(t, block, row) : t.gates + (block * chunk_rows + kept) * 4 * v;
      const bool last = block + 1 == blocks_;
      if (choice_.ahead) p.ahead = {last ? weights : w + panel, layer.input * 4 * v};
      kernels_.forward(p);
    }
  }
}

void CellPlan::recurrence(const Member& me, const Call& call, const Layer& layer, const Tensors& t,
                          std::int64_t step, std::int64_t chunk_start) const {
  const std::int64_t v = kernels_.lanes, batch = call.extent.batch, hidden = problem_.hidden;
  const Range samples = choice_.split_batch ? split(batch, me.count, me.id) : Range{0, batch};
  const Range mine = choice_.split_batch ? Range{0, blocks_} : my_blocks(me);
  if (samples.size() == 0) return;
  const std::int64_t panel = (layer.input + hidden) * 4 * v;
  const float* weights = layer.weights.in(call.buffers.packed);
  const std::int64_t row = step * batch + samples.begin;
  const bool fused = choice_.chunk == 1;

  ForwardPanel p;
  p.rows = samples.size();
  p.tile_rows = choice_.rows;
  p.ldy = hidden;
  p.epilogue = call.training ? Epilogue::train : Epilogue::infer;
  for (std::int64_t block = mine.begin; block < mine.end; ++block) {
    const float* w = weights + block * panel;
    if (fused) {
      p.x = {t.x + row * layer.input, layer.input, w, layer.input};
      p.bias = layer.bias.in(call.buffers.packed) + block * 4 * v;
    }
    p.h = {h_before(call, t, step) + samples.begin * hidden, hidden, w + layer.input * 4 * v,
           hidden};
    if (call.training) {
      p.gates = gates_at(t, block, row);
      p.c_before = c_at(t, block, row);
      p.c = c_at(t, block, row + batch);
      p.tanh_c = tanh_c_at(t, block, row);
    } else {
      const std::int64_t kept = (step - chunk_start) * batch + samples.begin;
      p.gates = t.gates + (block * infer_chunk_ * batch + kept) * 4 * v;
      p.c = t.c + (block * problem_.batch + samples.begin) * v;
      p.c_before = p.c;
    }
    p.y = t.y + row * hidden + block * v;
    p.units = block_units(block);
    if (choice_.ahead) {
      const float* next = block + 1 < mine.end ? w + panel : weights + mine.begin * panel;
      p.ahead = {fused ? next : next + layer.input * 4 * v, (fused ? panel : hidden * 4 * v)};
    }
    kernels_.forward(p);
  }
}

void CellPlan::end_state(const Member& me, const Call& call, std::size_t l, const Tensors& t,
                         const Forward& args) const {
  const std::int64_t v = kernels_.lanes, batch = call.extent.batch, hidden = problem_.hidden;
  const auto state = static_cast<std::int64_t>(l) * batch * hidden;
  const Range rows = split(batch, me.count, me.id);
  if (args.h_n) {
    const float* last = t.y + (call.rows() - batch) * hidden;
    std::copy(last + rows.begin * hidden, last + rows.end * hidden,
              args.h_n + state + rows.begin * hidden);
  }
  if (args.c_n == nullptr) return;
  for (std::int64_t block = 0; block < blocks_; ++block) {
    const float* c = call.training ? c_at(t, block, call.rows()) : t.c + block * problem_.batch * v;
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      std::copy_n(c + row * v, block_units(block), args.c_n + state + row * hidden + block * v);
  }
}

}  // namespace rnntune::cpu
