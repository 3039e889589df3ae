// SPDX-License-Identifier: Apache-2.0
// The pointwise plan: one layer over a chunk of time steps, forward and backward, and its weight
// gradients.
#include "cuda/pointwise.hpp"

namespace rnntune::cuda {
namespace {

constexpr int kTile = 32;            // of pointwise_tile.cuh
constexpr int kTileRows = 8;         // of a block that transposes
constexpr int kSumRows = 32;         // of a block that sums by columns, and
constexpr int kSumWarps = 8;         // by rows
constexpr std::int64_t kPart = 256;  // elements of a thread that sums, where sums may be cut
constexpr std::int64_t kMostParts = 64;

// A grid of tiles of kTile x kTile over [rows_all, columns], blocks of 32 x rows threads.
gpu::LaunchShape tiles_of(std::int64_t rows_all, std::int64_t columns, int rows) {
  return grid_of((rows_all + kTile - 1) / kTile * rows, columns, rows);
}

std::int64_t gate_stride(const Matrix& gates, std::int64_t hidden) {
  return gates.by_columns ? hidden * gates.ld : hidden;
}

// The time steps of a chunk whose products differ in shape: two, where they are rehearsed.
std::int64_t steps_of(const Queue& queue, std::int64_t steps) {
  return queue.rehearses() ? std::min<std::int64_t>(steps, 2) : steps;
}

}  // namespace

// ---- where things lie

Matrix PointwisePlan::gate_memory(float* data, bool thb, std::int64_t rows) const {
  return {data, thb ? rows : 4 * problem_.hidden, thb};
}

PointwisePlan::Gates PointwisePlan::direct_gates(const Chunked& call, std::int64_t l) const {
  const bool recomputes = choice_.keep == Keep::recompute;
  const auto at = static_cast<std::size_t>(l);
  float* const data =
      recomputes ? recomputed_[at].in(call.buffers.workspace) : gates_[at].in(call.buffers.reserve);
  return {gate_memory(data, choice_.forward_thb, problem_.time * problem_.batch), true};
}

PointwisePlan::Gates PointwisePlan::forward_gates(const Chunked& call, std::int64_t l) const {
  const bool kept = choice_.keep != Keep::recompute || choice_.direct();
  if (call.training && kept) return direct_gates(call, l);
  float* const data = lane_of(l).gates.in(call.buffers.workspace);
  return {gate_memory(data, choice_.forward_thb, lane_rows_), false};
}

PointwisePlan::Gates PointwisePlan::turned_gates(const Chunked& call, std::int64_t l) const {
  const bool thb = !choice_.forward_thb;
  std::byte* const workspace = call.buffers.workspace;
  if (choice_.weights_thb == choice_.forward_thb) {
    return {gate_memory(lane_of(l).turned.in(workspace), thb, training_rows_), false};
  }
  float* const data = turned_[static_cast<std::size_t>(l)].in(workspace);
  return {gate_memory(data, thb, problem_.time * problem_.batch), true};
}

PointwisePlan::Gates PointwisePlan::gradients_in(const Chunked& call, std::int64_t l,
                                                 bool thb) const {
  return thb == choice_.forward_thb ? direct_gates(call, l) : turned_gates(call, l);
}

Matrix PointwisePlan::chunk_of(const Chunked& call, const Gates& gates, std::int64_t s) const {
  return gates.whole ? gates.data.from(call.first(s) * call.extent.batch, 0) : gates.data;
}

Matrix PointwisePlan::step_of(const Chunked& call, const Gates& gates, std::int64_t t) const {
  const std::int64_t first = gates.whole ? 0 : t / call.chunk * call.chunk;
  return gates.data.from((t - first) * call.extent.batch, 0);
}

float* PointwisePlan::c_at(const Call& call, std::int64_t l, std::int64_t t) const {
  if (!call.training) return lane_of(l).c.in(call.buffers.workspace);
  return c_[static_cast<std::size_t>(l)].in(call.buffers.reserve) + t * call.state;
}

// In thb c_0 has been turned into the lane's.
const float* PointwisePlan::c_before(const Call& call, std::int64_t l, std::int64_t t,
                                     const float* c_0) const {
  if (t > 0) return c_at(call, l, t - 1);
  if (c_0 == nullptr) return nullptr;
  return choice_.forward_thb ? lane_of(l).c_0.in(call.buffers.workspace)
                             : layer_of(c_0, l, call.state);
}

void PointwisePlan::turn(Queue& queue, const float* from, float* to, std::int64_t rows,
                         std::int64_t columns) const {
  TransposeArguments<float> a;
  a.from = from;
  a.to = to;
  a.rows = static_cast<int>(rows);
  a.columns = static_cast<int>(columns);
  queue.launch(*kernels_.transpose, tiles_of(rows, columns, kTileRows), a);
}

// ---- forward

void PointwisePlan::forward_chunk(Queue& queue, const Chunked& call, const Forward& args,
                                  std::int64_t l, std::int64_t s) const {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const std::int64_t first = call.first(s), steps = call.steps(s);
  const bool turns = choice_.forward_thb;
  if (s == 0 && turns && args.c_0 != nullptr) {
    turn(queue, layer_of(args.c_0, l, call.state), lane_of(l).c_0.in(call.buffers.workspace), batch,
         hidden);
  }
  const ConstMatrix x = input_of(call, l, args.x, args.y).from(first * batch, 0);
  queue.multiply(Role::sequence, product(steps * batch, 4 * hidden, layer.input, x,
                                         weight_ih(call, layer).transposed(),
                                         chunk_of(call, forward_gates(call, l), s), 0));
  const std::int64_t end = first + steps_of(queue, steps);
  for (std::int64_t t = first; t < end; ++t) forward_step(queue, call, args, l, t);
  if (first + steps == call.extent.time && turns && args.c_n != nullptr) {
    turn(queue, c_at(call, l, call.extent.time - 1), layer_of(args.c_n, l, call.state), hidden,
         batch);
  }
}

void PointwisePlan::forward_step(Queue& queue, const Chunked& call, const Forward& args,
                                 std::int64_t l, std::int64_t t) const {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const float* const h_before = t == 0 ? layer_of(args.h_0, l, call.state)
                                       : output_of(call, l, args.y) + (t - 1) * call.state;
  if (h_before != nullptr) {
    queue.multiply(Role::step, product(batch, 4 * hidden, hidden, {h_before, hidden, false},
                                       weight_hh(call, layer).transposed(),
                                       step_of(call, forward_gates(call, l), t), 1));
  }
  forward_gate_kernel(queue, call, args, l, t);
}

void PointwisePlan::forward_gate_kernel(Queue& queue, const Chunked& call, const Forward& args,
                                        std::int64_t l, std::int64_t t) const {
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const bool last = t + 1 == call.extent.time, thb = choice_.forward_thb;
  const Matrix gates = step_of(call, forward_gates(call, l), t);
  PointwiseForwardArguments a;
  a.gates = gates.data;
  a.gate_stride = gate_stride(gates, hidden);
  a.ld = gates.ld;
  a.bias = bias(call, layers_[static_cast<std::size_t>(l)]);
  a.c_before = c_before(call, l, t, args.c_0);
  a.c = c_at(call, l, t);
  // What a layer writes is not const: y of the call, the reserve or the workspace.
  a.h = const_cast<float*>(output_of(call, l, args.y)) + t * call.state;
  a.h_n = last ? layer_of(args.h_n, l, call.state) : nullptr;
  a.c_n = last && !thb ? layer_of(args.c_n, l, call.state) : nullptr;
  a.batch = static_cast<int>(batch);
  a.hidden = static_cast<int>(hidden);
  a.vectors = are_vectors(hidden, {a.gates, a.c_before, a.c, a.h, a.h_n, a.c_n});
  const gpu::LaunchShape shape = thb ? tiles_of(hidden, batch, choice_.rows)
                                     : grid_of(batch, hidden, choice_.rows, choice_.vector);
  queue.launch(call.training ? *kernels_.forward_training : *kernels_.forward_inference, shape, a);
}

// ---- backward

void PointwisePlan::backward_chunk(Queue& queue, const Chunked& call, const BackwardData& args,
                                   std::int64_t l, std::int64_t s) const {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const std::int64_t first = call.first(s), steps = call.steps(s);
  const bool turns = choice_.forward_thb;
  const Lane& lane = lane_of(l);
  std::byte* const workspace = call.buffers.workspace;
  if (first + steps == call.extent.time && turns) {
    if (args.dc_n != nullptr) {
      turn(queue, layer_of(args.dc_n, l, call.state), lane.dc.in(workspace), batch, hidden);
    }
    if (args.c_0 != nullptr) {
      turn(queue, layer_of(args.c_0, l, call.state), lane.c_0.in(workspace), batch, hidden);
    }
  }
  if (choice_.keep == Keep::recompute) recompute_chunk(queue, call, args, l, s);
  const std::int64_t end = first + steps - steps_of(queue, steps);
  for (std::int64_t t = first + steps - 1; t >= end; --t) backward_step(queue, call, args, l, t);
  float* const dx = dx_of(call, l, args.dx);
  if (dx != nullptr) {
    const ConstMatrix dgates = chunk_of(call, gradients_in(call, l, choice_.data_thb), s);
    queue.multiply(Role::sequence,
                   product(steps * batch, layer.input, 4 * hidden, dgates, weight_ih(call, layer),
                           {dx + first * batch * layer.input, layer.input, false}, 0));
  }
  if (first == 0 && turns && args.dc_0 != nullptr) {
    turn(queue, lane.dc.in(workspace), layer_of(args.dc_0, l, call.state), hidden, batch);
  }
}

void PointwisePlan::backward_step(Queue& queue, const Chunked& call, const BackwardData& args,
                                  std::int64_t l, std::int64_t t) const {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  backward_gate_kernel(queue, call, args, l, t);
  float* const dh =
      t > 0 ? lane_of(l).dh.in(call.buffers.workspace) : layer_of(args.dh_0, l, call.state);
  if (dh == nullptr) return;
  const ConstMatrix dgates = step_of(call, gradients_in(call, l, choice_.data_thb), t);
  queue.multiply(Role::step, product(batch, hidden, 4 * hidden, dgates, weight_hh(call, layer),
                                     {dh, hidden, false}, 0));
}

void PointwisePlan::backward_gate_kernel(Queue& queue, const Chunked& call,
                                         const BackwardData& args, std::int64_t l,
                                         std::int64_t t) const {
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const bool last = t + 1 == call.extent.time, thb = choice_.forward_thb;
  const Lane& lane = lane_of(l);
  std::byte* const workspace = call.buffers.workspace;
  const Matrix gates = step_of(call, forward_gates(call, l), t);
  const float* const dy = l + 1 == problem_.layers ? args.dy : dx_of(call, l + 1, nullptr);
  float* const dc = lane.dc.in(workspace);
  float* const dc_0 = layer_of(args.dc_0, l, call.state);
  const float* dc_n = layer_of(args.dc_n, l, call.state);
  if (thb && dc_n != nullptr) dc_n = dc;
  PointwiseBackwardArguments a;
  a.gates = gates.data;
  a.gate_stride = gate_stride(gates, hidden);
  a.ld = gates.ld;
  a.bias = bias(call, layers_[static_cast<std::size_t>(l)]);
  a.c_before = c_before(call, l, t, args.c_0);
  a.c = c_at(call, l, t);
  a.dy = dy + t * call.state;
  a.dh = last ? layer_of(args.dh_n, l, call.state) : lane.dh.in(workspace);
  a.dc_in = last ? dc_n : dc;
  a.dc_out = t == 0 && !thb && dc_0 != nullptr ? dc_0 : dc;
  if (choice_.direct()) {
    const Matrix direct = step_of(call, direct_gates(call, l), t);
    a.direct = direct.data;
    a.direct_gate_stride = gate_stride(direct, hidden);
    a.direct_ld = direct.ld;
  }
  if (choice_.turned()) {
    const Matrix turned = step_of(call, turned_gates(call, l), t);
    a.turned = turned.data;
    a.turned_gate_stride = gate_stride(turned, hidden);
    a.turned_ld = turned.ld;
  }
  a.batch = static_cast<int>(batch);
  a.hidden = static_cast<int>(hidden);
  a.vectors =
      are_vectors(hidden, {a.gates, a.c_before, a.c, a.dy, a.dh, a.dc_in, a.dc_out, a.direct});
  const gpu::LaunchShape tiles =
      thb ? tiles_of(hidden, batch, choice_.rows) : tiles_of(batch, hidden, choice_.rows);
  const gpu::LaunchShape plain = grid_of(batch, hidden, choice_.rows, choice_.vector);
  queue.launch(*kernels_.backward, choice_.plain() ? plain : tiles, a);
}

// The pre-activations of a chunk, from x and the h before each time step.
void PointwisePlan::recompute_chunk(Queue& queue, const Chunked& call, const BackwardData& args,
                                    std::int64_t l, std::int64_t s) const {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const std::int64_t first = call.first(s), rows = call.steps(s) * batch;
  const Matrix gates = chunk_of(call, forward_gates(call, l), s);
  const ConstMatrix x = input_of(call, l, args.x, args.y).from(first * batch, 0);
  const float* const y = output_of(call, l, args.y);
  const float* const h_0 = layer_of(args.h_0, l, call.state);
  const auto add = [&](std::int64_t from, std::int64_t count, const float* h_before) {
    if (h_before == nullptr || count == 0) return;
    queue.multiply(Role::sequence,
                   product(count, 4 * hidden, hidden, {h_before, hidden, false},
                           weight_hh(call, layer).transposed(), gates.from(from, 0), 1));
  };
  queue.multiply(Role::sequence, product(rows, 4 * hidden, layer.input, x,
                                         weight_ih(call, layer).transposed(), gates, 0));
  if (first == 0) {
    add(0, batch, h_0);
    add(batch, rows - batch, y);
  } else {
    add(0, rows, y + (first - 1) * call.state);
  }
}

// ---- weight gradients

void PointwisePlan::weights_layer(Queue& queue, const Chunked& call, const BackwardWeights& args,
                                  std::int64_t l) const {
  const std::int64_t input = layers_[static_cast<std::size_t>(l)].input, hidden = problem_.hidden;
  const std::int64_t batch = call.extent.batch;
  const LayerGradients& to = args.gradients[l];
  const Matrix dgates = gradients_in(call, l, choice_.weights_thb).data;
  queue.multiply(Role::sequence,
                 product(4 * hidden, input, call.rows(), ConstMatrix(dgates).transposed(),
                         input_of(call, l, args.x, args.y), {to.weight_ih, input, false}, 1));
  const auto add = [&](std::int64_t from, std::int64_t count, const float* h_before) {
    if (h_before == nullptr || count == 0) return;
    queue.multiply(
        Role::sequence,
        product(4 * hidden, hidden, count, ConstMatrix(dgates.from(from, 0)).transposed(),
                {h_before, hidden, false}, {to.weight_hh, hidden, false}, 1));
  };
  add(0, batch, layer_of(args.h_0, l, call.state));
  add(batch, call.rows() - batch, output_of(call, l, args.y));
  if (problem_.bias != Bias::none) bias_gradient(queue, call, dgates, to);
}

void PointwisePlan::bias_gradient(Queue& queue, const Chunked& call, const Matrix& dgates,
                                  const LayerGradients& to) const {
  const bool thb = dgates.by_columns;
  const std::int64_t gates = 4 * problem_.hidden;
  BiasGradientArguments a;
  a.dgates = dgates.data;
  a.ld = dgates.ld;
  a.rows = thb ? gates : call.rows();
  a.columns = thb ? call.rows() : gates;
  a.db = to.bias_ih;
  a.db_too = problem_.bias == Bias::two ? to.bias_hh : nullptr;
  // By columns x covers the gates, 32 a block, by rows kSumWarps a block; y are the parts.
  gpu::LaunchShape shape = thb ? grid_of(1, (gates + kSumWarps - 1) / kSumWarps * kTile, kSumWarps)
                               : grid_of(1, gates, kSumRows);
  const std::int64_t part = kPart * (thb ? kTile : kSumRows);
  const std::int64_t parts = std::min((call.rows() + part - 1) / part, kMostParts);
  if (choice_.atomic_bias) shape.grid.y = static_cast<unsigned>(parts);
  queue.launch(*kernels_.sums, shape, a);
}

}  // namespace rnntune::cuda
