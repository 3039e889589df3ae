// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "cpu/unfused.hpp"

namespace rnntune::cpu {
namespace {

Out part(float* data, std::int64_t ld, Block block, std::int64_t column = 0) {
  return {data + block.rows.begin * ld + column + block.cols.begin, ld};
}
In part(const float* data, std::int64_t ld, Block block, std::int64_t column = 0) {
  return {data + block.rows.begin * ld + column + block.cols.begin, ld};
}

}  // namespace

Result<std::unique_ptr<Plan>> UnfusedPlan::make(const Problem& problem, const Elementwise& kernels,
                                                const TeamConfig& team) {
  std::unique_ptr<UnfusedPlan> plan(new UnfusedPlan(problem, kernels, team));
  const PlanMemory& memory = plan->memory_;
  return memory.check(problem, std::move(plan));
}

UnfusedPlan::UnfusedPlan(const Problem& problem, const Elementwise& kernels, const TeamConfig& team)
    : BlasPlan(problem, kernels, team) {
  const Checked step = Checked(problem.batch) * problem.hidden;
  const Checked sequence = step * problem.time;
  for (Layer& layer : layers_) {
    layer.gates = memory_.reserve.add(sequence * 4);
    layer.c = memory_.reserve.add(sequence);
    tanh_c_.push_back(memory_.reserve.add(sequence));
  }
  for (Place* place :
       {&zeros_, &infer_tanh_c_, &dh_, &dc_, &temporary_, &gradient_, &infer_c_[0], &infer_c_[1]}) {
    *place = memory_.workspace.add(step);
  }
  infer_gates_ = memory_.workspace.add(step * 4);
}

UnfusedPlan::Tensors UnfusedPlan::tensors(const Call& call, std::int64_t l, const float* x,
                                          const float* h_0, const float* c_0,
                                          const float* y) const {
  const Layer& layer = layers_[std::size_t(l)];
  const std::int64_t state = call.extent.batch * problem_.hidden;
  Tensors z;
  z.x = input_of(l, x, y, call.buffers, call.training);
  z.h_0 = layer_of(h_0, l, state);
  z.c_0 = c_0 == nullptr ? zeros_.in(call.buffers.workspace) : c_0 + l * state;
  z.y = output_of(l, y, call.buffers, call.training);
  z.gates = call.training ? layer.gates.in(call.buffers.reserve)
                          : infer_gates_.in(call.buffers.workspace);
  z.c = call.training ? layer.c.in(call.buffers.reserve) : nullptr;
  z.tanh_c = call.training ? tanh_c_[std::size_t(l)].in(call.buffers.reserve)
                           : infer_tanh_c_.in(call.buffers.workspace);
  return z;
}

float* UnfusedPlan::c_at(const Call& call, const Tensors& z, std::int64_t t) const {
  return call.training ? z.c + t * call.extent.batch * problem_.hidden
                       : infer_c_[std::size_t(t % 2)].in(call.buffers.workspace);
}

Status UnfusedPlan::forward(Mode mode, Extent extent, const Forward& args,
                            const PlanBuffers& buffers, Stream) {
  const Call call{extent, buffers, mode == Mode::training};
  team_.run([&](const TeamShare& share) {
    share.each(extent.batch, problem_.hidden, [&](Block units) {
      copy_block(nullptr, zeros_.in(buffers.workspace), problem_.hidden, units);
    });
    for (std::int64_t l = 0; l < problem_.layers; ++l) {
      forward_layer(call, l, tensors(call, l, args.x, args.h_0, args.c_0, args.y), args, share);
    }
  });
  return {};
}

void UnfusedPlan::forward_layer(const Call& call, std::int64_t l, const Tensors& z,
                                const Forward& args, const TeamShare& share) const {
  const std::int64_t state = call.extent.batch * problem_.hidden;
  const std::int64_t last = call.extent.time - 1;
  // What this layer writes is not const: y of the call, the reserve or the workspace.
  float* const y = const_cast<float*>(z.y);
  for (std::int64_t t = 0; t <= last; ++t) forward_step(call, l, z, t, y + t * state, share);
  share.each(call.extent.batch, problem_.hidden, [&](Block units) {
    float* const h_n = layer_of(args.h_n, l, state);
    float* const c_n = layer_of(args.c_n, l, state);
    if (h_n != nullptr) copy_block(y + last * state, h_n, problem_.hidden, units);
    if (c_n != nullptr) copy_block(c_at(call, z, last), c_n, problem_.hidden, units);
  });
}

void UnfusedPlan::forward_step(const Call& call, std::int64_t l, const Tensors& z, std::int64_t t,
                               float* h, const TeamShare& share) const {
  const Layer& layer = layers_[std::size_t(l)];
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  float* const gates = z.gates + (call.training ? t * batch * 4 * hidden : 0);
  const float* const h_before = t == 0 ? z.h_0 : h - batch * hidden;

  const Block products = share.of(batch, 4 * hidden);
  const ConstMatrix w_ih{layer.weight_ih.in(call.buffers.packed), layer.input, false};
  const ConstMatrix w_hh{layer.weight_hh.in(call.buffers.packed), hidden, false};
  const Matrix pre{gates, 4 * hidden, false};
  multiply(*team_.blas.forward, products, layer.input, z.x.from(t * batch, 0), w_ih.transposed(),
           pre, 0);
  if (h_before != nullptr) {
    multiply(*team_.blas.forward, products, hidden, {h_before, hidden, false}, w_hh.transposed(),
             pre, 1);
  }
  share.wait_for_units();
  share.each(batch, hidden, [&](Block units) { forward_gates(call, layer, z, t, h, units); });
  share.wait_for_units();
}

void UnfusedPlan::forward_gates(const Call& call, const Layer& layer, const Tensors& z,
                                std::int64_t t, float* h, Block units) const {
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const Elementwise& k = kernels_;
  float* const gates = z.gates + (call.training ? t * batch * 4 * hidden : 0);
  float* const tanh_c = z.tanh_c + (call.training ? t * batch * hidden : 0);
  float* const c = c_at(call, z, t);
  const float* const c_before = t == 0 ? z.c_0 : c_at(call, z, t - 1);
  const Shape n{units.rows.size(), units.cols.size()};
  const auto gate = [&](std::int64_t q) { return part(gates, 4 * hidden, units, q * hidden); };
  const Out i = gate(0), f = gate(1), g = gate(2), o = gate(3);
  if (problem_.bias != Bias::none) {
    const float* const bias = layer.bias.in(call.buffers.packed) + units.cols.begin;
    for (std::int64_t q = 0; q < 4; ++q) k.add_bias(n, bias + q * hidden, gate(q));
  }
  k.sigmoid(n, i, i);
  k.sigmoid(n, f, f);
  k.tanh(n, g, g);
  k.sigmoid(n, o, o);
  const Out c_out = part(c, hidden, units), tanh_out = part(tanh_c, hidden, units);
  k.multiply(n, f, part(c_before, hidden, units), c_out);
  k.multiply_add(n, i, g, c_out);
  k.tanh(n, c_out, tanh_out);
  k.multiply(n, o, tanh_out, part(h, hidden, units));
}

Status UnfusedPlan::backward_data(Extent extent, const BackwardData& args,
                                  const PlanBuffers& buffers, Stream) {
  const Call call{extent, buffers, true};
  team_.run([&](const TeamShare& share) {
    share.each(extent.batch, problem_.hidden, [&](Block units) {
      copy_block(nullptr, zeros_.in(buffers.workspace), problem_.hidden, units);
    });
    const float* dy = args.dy;
    for (std::int64_t l = problem_.layers - 1; l >= 0; --l) {
      float* const dx = l == 0 ? args.dx : between_[std::size_t(l % 2)].in(buffers.workspace);
      backward_layer(call, l, tensors(call, l, args.x, args.h_0, args.c_0, args.y), args, dy, dx,
                     share);
      dy = dx;
    }
  });
  return {};
}

void UnfusedPlan::backward_layer(const Call& call, std::int64_t l, const Tensors& z,
                                 const BackwardData& args, const float* dy, float* dx,
                                 const TeamShare& share) const {
  const Layer& layer = layers_[std::size_t(l)];
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const std::int64_t state = batch * hidden;
  float* const dh = dh_.in(call.buffers.workspace);
  float* const dc = dc_.in(call.buffers.workspace);
  share.each(batch, hidden, [&](Block units) {
    copy_block(layer_of(args.dh_n, l, state), dh, hidden, units);
    copy_block(layer_of(args.dc_n, l, state), dc, hidden, units);
  });
  const ConstMatrix w_ih{layer.weight_ih.in(call.buffers.packed), layer.input, false};
  const ConstMatrix w_hh{layer.weight_hh.in(call.buffers.packed), hidden, false};
  for (std::int64_t t = call.extent.time - 1; t >= 0; --t) {
    share.each(batch, hidden,
               [&](Block units) { backward_gates(call, z, t, dy + t * state, units); });
    share.wait_for_units();
    // After this a thread reads only the units of dh and dx that it writes here: no barrier.
    const ConstMatrix dgates{z.gates + t * batch * 4 * hidden, 4 * hidden, false};
    float* const dh_out = t > 0 ? dh : layer_of(args.dh_0, l, state);
    if (dh_out != nullptr) {
      multiply(*team_.blas.data, share.of(batch, hidden), 4 * hidden, dgates, w_hh,
               {dh_out, hidden, false}, 0);
    }
    if (dx != nullptr) {
      multiply(*team_.blas.data, share.of(batch, layer.input), 4 * hidden, dgates, w_ih,
               {dx + t * batch * layer.input, layer.input, false}, 0);
    }
  }
  if (args.dc_0 == nullptr) return;
  share.each(batch, hidden,
             [&](Block units) { copy_block(dc, args.dc_0 + l * state, hidden, units); });
}

void UnfusedPlan::backward_gates(const Call& call, const Tensors& z, std::int64_t t,
                                 const float* dy, Block units) const {
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const std::int64_t state = batch * hidden;
  const Elementwise& k = kernels_;
  const Shape n{units.rows.size(), units.cols.size()};
  const auto gate = [&](std::int64_t q) {
    return part(z.gates + t * 4 * state, 4 * hidden, units, q * hidden);
  };
  const auto scratch = [&](const Place& place) {
    return part(place.in(call.buffers.workspace), hidden, units);
  };
  const Out i = gate(0), f = gate(1), g = gate(2), o = gate(3);
  const Out dh = scratch(dh_), dc = scratch(dc_), d = scratch(temporary_), dg = scratch(gradient_);
  const In tanh_c = part(static_cast<const float*>(z.tanh_c) + t * state, hidden, units);
  const In c_before = part(t == 0 ? z.c_0 : z.c + (t - 1) * state, hidden, units);
  k.add(n, part(dy, hidden, units), dh, dh);
  k.multiply(n, dh, o, d);
  k.tanh_backward(n, d, tanh_c, d);
  k.add(n, dc, d, dc);
  k.multiply(n, dh, tanh_c, d);
  k.sigmoid_backward(n, d, o, o);
  k.multiply(n, dc, g, d);
  k.multiply(n, dc, i, dg);
  k.sigmoid_backward(n, d, i, i);
  k.tanh_backward(n, dg, g, g);
  k.multiply(n, dc, c_before, d);
  k.multiply(n, dc, f, dc);
  k.sigmoid_backward(n, d, f, f);
}

Status UnfusedPlan::backward_weights(Extent extent, const BackwardWeights& args,
                                     const PlanBuffers& buffers, Stream) {
  const Call call{extent, buffers, true};
  team_.run([&](const TeamShare& share) {
    for (std::int64_t l = 0; l < problem_.layers; ++l) {
      weights_layer(call, l, tensors(call, l, args.x, args.h_0, nullptr, args.y), args.gradients[l],
                    share.by_units());
    }
  });
  return {};
}

// The threads share the rows of the weights: [4H, input] and [4H, H].
void UnfusedPlan::weights_layer(const Call& call, std::int64_t l, const Tensors& z,
                                const LayerGradients& gradients, const TeamShare& share) const {
  const std::int64_t input = layers_[std::size_t(l)].input, hidden = problem_.hidden;
  const std::int64_t batch = call.extent.batch;
  const Range rows = share.of(1, 4 * hidden).cols;
  float* const db = db_.in(call.buffers.workspace);
  copy_block(nullptr, db, 4 * hidden, {{0, 1}, rows});
  for (std::int64_t t = 0; t < call.extent.time; ++t) {
    const ConstMatrix dgates{z.gates + t * batch * 4 * hidden, 4 * hidden, false};
    const float* const h_before = t == 0 ? z.h_0 : z.y + (t - 1) * batch * hidden;
    multiply(*team_.blas.weights, {rows, {0, input}}, batch, dgates.transposed(),
             z.x.from(t * batch, 0), {gradients.weight_ih, input, false}, 1);
    if (h_before != nullptr) {
      multiply(*team_.blas.weights, {rows, {0, hidden}}, batch, dgates.transposed(),
               {h_before, hidden, false}, {gradients.weight_hh, hidden, false}, 1);
    }
    share.each(1, 4 * hidden, [&](Block part) {
      const std::int64_t at = part.cols.begin;
      kernels_.sum_rows({batch, part.cols.size()}, {dgates.data + at, 4 * hidden}, db + at);
    });
  }
  for (float* const bias : {gradients.bias_ih, gradients.bias_hh}) {
    if (bias == nullptr) continue;
    const Out out{bias + rows.begin, 4 * hidden};
    kernels_.add({1, rows.size()}, out, {db + rows.begin, 4 * hidden}, out);
  }
}

}  // namespace rnntune::cpu
