// SPDX-License-Identifier: Apache-2.0
// The pointwise plan: one layer over time, forward, backward and the weight gradients.
#include <algorithm>

#include "cpu/pointwise.hpp"

namespace rnntune::cpu {
namespace {

In in(ConstMatrix matrix, Block block) {
  const ConstMatrix part = matrix.from(block.rows.begin, block.cols.begin);
  return {part.data, part.ld};
}
Out out(Matrix matrix, Block block) {
  const Matrix part = matrix.from(block.rows.begin, block.cols.begin);
  return {part.data, part.ld};
}

}  // namespace

// When threads share units, a thread has the same columns in the product of a chunk and in the
// steps after it. When they share samples, a chunk's rows of one sample are apart, so the product
// is cut by rows and the team meets before and after it.
void PointwisePlan::forward_layer(const Call& call, std::int64_t l, const Tensors& z,
                                  const Forward& args, const TeamShare& share) const {
  const Layer& layer = layers_[std::size_t(l)];
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const std::int64_t last = call.extent.time - 1;
  // What this layer writes is not const: y of the call, the reserve or the workspace.
  float* const y = const_cast<float*>(z.y);
  const ConstMatrix w_ih{layer.weight_ih.in(call.buffers.packed), layer.input, false};
  share.each(batch, hidden, [&](Block units) { bring_in(z.c_0, state_of(call, c_0_), units); });
  for (std::int64_t first = 0; first <= last; first += call.chunk) {
    if (share.by_batch) share.member.wait();
    multiply(*team_.blas.forward, share.of(call.steps(first) * batch, 4 * hidden), layer.input,
             z.x.from(first * batch, 0), w_ih.transposed(), gates_chunk(call, z, first), 0);
    if (share.by_batch) share.member.wait();
    for (std::int64_t t = first; t < first + call.steps(first); ++t) {
      forward_step(call, layer, z, t, y + t * call.state, share);
    }
  }
  share.each(batch, hidden, [&](Block units) {
    float* const h_n = layer_of(args.h_n, l, call.state);
    float* const c_n = layer_of(args.c_n, l, call.state);
    if (h_n != nullptr) copy_block(y + last * call.state, h_n, hidden, units);
    if (c_n != nullptr) bring_out(c_at(call, z, last), c_n, units);
  });
}

void PointwisePlan::forward_step(const Call& call, const Layer& layer, const Tensors& z,
                                 std::int64_t t, float* y, const TeamShare& share) const {
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const bool by_columns = choice_.by_columns;
  const Matrix gates = gates_step(call, z, t);
  const ConstMatrix w_hh{layer.weight_hh.in(call.buffers.packed), hidden, false};
  ConstMatrix h_before{t == 0 ? z.h_0 : y - call.state, hidden, false};
  if (by_columns && t > 0) h_before = state_of(call, h_[std::size_t((t - 1) % 2)]);
  if (h_before) {
    multiply(*team_.blas.forward, share.of(batch, 4 * hidden), hidden, h_before, w_hh.transposed(),
             gates, 1);
  }
  share.wait_for_units();
  share.each(batch, hidden, [&](Block units) { forward_gates(call, layer, z, t, y, units); });
  share.wait_for_units();
}

void PointwisePlan::forward_gates(const Call& call, const Layer& layer, const Tensors& z,
                                  std::int64_t t, float* y, Block units) const {
  const bool by_columns = choice_.by_columns;
  const Matrix h =
      by_columns ? state_of(call, h_[std::size_t(t % 2)]) : Matrix{y, problem_.hidden, false};
  PointwiseForward step;
  step.n = shape_of(units);
  step.gates = gates_of(call, layer, gates_step(call, z, t), units);
  step.keep_gates = z.gates_kept;
  step.c_before = in(t == 0 ? state_of(call, c_0_) : c_at(call, z, t - 1), units);
  step.c = out(c_at(call, z, t), units);
  step.h = out(h, units);
  gate_kernels_.forward[by_columns](step);
  if (by_columns) bring_out(h, y, units);
}

void PointwisePlan::backward_layer(const Call& call, std::int64_t l, const Tensors& z,
                                   const BackwardData& args, const float* dy, float* dx,
                                   const TeamShare& share) const {
  const Layer& layer = layers_[std::size_t(l)];
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const ConstMatrix w_ih{layer.weight_ih.in(call.buffers.packed), layer.input, false};
  const ConstMatrix w_hh{layer.weight_hh.in(call.buffers.packed), hidden, false};
  const Matrix dh = state_of(call, dh_);
  float* const dh_0 = layer_of(args.dh_0, l, call.state);
  share.each(batch, hidden, [&](Block units) {
    bring_in(layer_of(args.dh_n, l, call.state), dh, units);
    bring_in(layer_of(args.dc_n, l, call.state), state_of(call, dc_), units);
    bring_in(z.c_0, state_of(call, c_0_), units);
  });
  for (std::int64_t first = call.first_of(call.extent.time - 1); first >= 0; first -= call.chunk) {
    const std::int64_t steps = call.steps(first);
    if (choice_.recompute) recompute_chunk(call, layer, z, first, share.member);
    for (std::int64_t t = first + steps - 1; t >= first; --t) {
      share.each(batch, hidden, [&](Block units) {
        backward_gates(call, layer, z, t, dy + t * call.state, units);
      });
      share.wait_for_units();
      // After this a thread reads only the units of dh and dx that it writes here: no barrier.
      const Matrix dh_out = t > 0 ? dh : Matrix{dh_0, hidden, false};
      if (dh_out) {
        multiply(*team_.blas.data, share.of(batch, hidden), 4 * hidden, gates_step(call, z, t),
                 w_hh, dh_out, 0);
      }
    }
    if (dx == nullptr) continue;
    if (share.by_batch) share.member.wait();
    multiply(*team_.blas.data, share.of(steps * batch, layer.input), 4 * hidden,
             gates_chunk(call, z, first), w_ih,
             {dx + first * batch * layer.input, layer.input, false}, 0);
  }
  if (args.dc_0 != nullptr) {
    share.each(batch, hidden, [&](Block units) {
      bring_out(state_of(call, dc_), args.dc_0 + l * call.state, units);
    });
  }
  if (share.by_batch) share.member.wait();  // dx was cut by rows, not by samples
}

// The pre-activations of a chunk, from x and the h before each time step. Cut by gates for either
// split, so that one thread adds both products.
void PointwisePlan::recompute_chunk(const Call& call, const Layer& layer, const Tensors& z,
                                    std::int64_t first, const Member& member) const {
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const std::int64_t rows = call.steps(first) * batch;
  const Range gates = split(4 * hidden, member.count, member.id, TeamShare::kLine);
  const ConstMatrix w_ih{layer.weight_ih.in(call.buffers.packed), layer.input, false};
  const ConstMatrix w_hh{layer.weight_hh.in(call.buffers.packed), hidden, false};
  const Matrix chunk = gates_chunk(call, z, first);
  const Blas& blas = *team_.blas.forward;
  const auto add = [&](std::int64_t from, std::int64_t count, const float* h_before) {
    if (h_before == nullptr || count == 0) return;
    multiply(blas, {{0, count}, gates}, hidden, {h_before, hidden, false}, w_hh.transposed(),
             chunk.from(from, 0), 1);
  };
  multiply(blas, {{0, rows}, gates}, layer.input, z.x.from(first * batch, 0), w_ih.transposed(),
           chunk, 0);
  if (first == 0) {
    add(0, batch, z.h_0);
    add(batch, rows - batch, z.y);
  } else {
    add(0, rows, z.y + (first - 1) * call.state);
  }
  member.wait();
}

void PointwisePlan::backward_gates(const Call& call, const Layer& layer, const Tensors& z,
                                   std::int64_t t, const float* dy, Block units) const {
  const std::int64_t hidden = problem_.hidden;
  In dy_in{dy + units.rows.begin * hidden + units.cols.begin, hidden};
  if (choice_.by_columns) {
    const Matrix turned = state_of(call, dy_);
    bring_in(dy, turned, units);
    dy_in = in(turned, units);
  }
  PointwiseBackward step;
  step.n = shape_of(units);
  step.gates = gates_of(call, layer, gates_step(call, z, t), units);
  step.activate = choice_.recompute;
  step.c_before = in(t == 0 ? state_of(call, c_0_) : c_at(call, z, t - 1), units);
  step.c = in(c_at(call, z, t), units);
  step.dy = dy_in;
  step.dh = in(state_of(call, dh_), units);
  step.dc = out(state_of(call, dc_), units);
  gate_kernels_.backward[choice_.by_columns](step);
}

// The threads share the rows of the weights: [4H, input] and [4H, H]. By rows all chunks are one.
void PointwisePlan::weights_layer(const Call& call, std::int64_t l, const Tensors& z,
                                  const LayerGradients& gradients, const TeamShare& share) const {
  const std::int64_t input = layers_[std::size_t(l)].input, hidden = problem_.hidden;
  const std::int64_t batch = call.extent.batch;
  const Range rows = share.of(1, 4 * hidden).cols;
  const Blas& blas = *team_.blas.weights;
  float* const db = db_.in(call.buffers.workspace);
  copy_block(nullptr, db, 4 * hidden, {{0, 1}, rows});
  Call whole = call;
  if (!choice_.by_columns) whole.chunk = call.extent.time;
  for (std::int64_t first = 0; first < call.extent.time; first += whole.chunk) {
    const std::int64_t count = whole.steps(first) * batch;
    const Matrix dgates = gates_chunk(whole, z, first);
    multiply(blas, {rows, {0, input}}, count, ConstMatrix(dgates).transposed(),
             z.x.from(first * batch, 0), {gradients.weight_ih, input, false}, 1);
    const auto add = [&](std::int64_t from, std::int64_t depth, const float* h_before) {
      if (h_before == nullptr || depth == 0) return;
      multiply(blas, {rows, {0, hidden}}, depth, ConstMatrix(dgates.from(from, 0)).transposed(),
               {h_before, hidden, false}, {gradients.weight_hh, hidden, false}, 1);
    };
    if (first == 0) {
      add(0, batch, z.h_0);
      add(batch, count - batch, z.y);
    } else {
      add(0, count, z.y + (first - 1) * call.state);
    }
    share.each(1, 4 * hidden, [&](Block part) {
      const Range gates = part.cols;
      const In from = in(dgates, {{0, count}, gates});
      if (choice_.by_columns) {
        kernels_.sum_cols({gates.size(), count}, from, db + gates.begin);
      } else {
        kernels_.sum_rows({count, gates.size()}, from, db + gates.begin);
      }
    });
  }
  for (float* const bias : {gradients.bias_ih, gradients.bias_hh}) {
    if (bias == nullptr) continue;
    const Out sum{bias + rows.begin, 4 * hidden};
    kernels_.add({1, rows.size()}, sum, {db + rows.begin, 4 * hidden}, sum);
  }
}

}  // namespace rnntune::cpu
