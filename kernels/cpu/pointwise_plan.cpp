// SPDX-License-Identifier: Apache-2.0
// The pointwise plan: where everything lies, and the calls.
#include "cpu/pointwise.hpp"

namespace rnntune::cpu {
namespace {

// An inference needs no gates afterwards: its chunks have about this many rows, enough for a
// product at full speed, whatever the config keeps in training.
constexpr std::int64_t kInferenceRows = 256;

}  // namespace

Result<std::unique_ptr<Plan>> PointwisePlan::make(const Problem& problem,
                                                  const Elementwise& kernels,
                                                  const PointwiseKernels& gate_kernels,
                                                  const TeamConfig& team,
                                                  const PointwiseChoice& choice) {
  std::unique_ptr<PointwisePlan> plan(
      new PointwisePlan(problem, kernels, gate_kernels, team, choice));
  const PlanMemory& memory = plan->memory_;
  return memory.check(problem, std::move(plan));
}

PointwisePlan::PointwisePlan(const Problem& problem, const Elementwise& kernels,
                             const PointwiseKernels& gate_kernels, const TeamConfig& team,
                             const PointwiseChoice& choice)
    : BlasPlan(problem, kernels, team), gate_kernels_(gate_kernels), choice_(choice) {
  const Problem& p = problem_;
  const Checked step = Checked(p.batch) * p.hidden;
  const Checked sequence = step * p.time;
  Arena& workspace = memory_.workspace;
  for (Layer& layer : layers_) {
    layer.gates = (choice.recompute ? workspace : memory_.reserve).add(sequence * 4);
    layer.c = memory_.reserve.add(sequence);
  }
  if (choice.recompute) {
    gates_ = layers_.front().gates;  // forward and backward_data are never in it at once
  } else {
    const std::int64_t steps = choice.chunk == 0 ? p.time : std::min(choice.chunk, p.time);
    const std::int64_t rows = std::min(steps * p.batch, kInferenceRows + p.batch);
    gates_ = workspace.add(Checked(rows) * 4 * p.hidden);
  }
  for (Place* place : {&c_0_, &dh_, &dc_, &dy_, &c_[0], &c_[1], &h_[0], &h_[1]}) {
    *place = workspace.add(step);
  }
}

PointwisePlan::Call PointwisePlan::call(Extent extent, const PlanBuffers& buffers,
                                        bool training) const {
  std::int64_t chunk = choice_.chunk == 0 ? extent.time : std::min(choice_.chunk, extent.time);
  if (!training) {
    chunk = std::min(chunk, (kInferenceRows + extent.batch - 1) / extent.batch);
  }
  return {extent, buffers, training, chunk, extent.batch * problem_.hidden};
}

PointwisePlan::Tensors PointwisePlan::tensors(const Call& call, std::int64_t l, const float* x,
                                              const float* h_0, const float* c_0,
                                              const float* y) const {
  const Layer& layer = layers_[std::size_t(l)];
  Tensors z;
  z.x = input_of(l, x, y, call.buffers, call.training);
  z.h_0 = layer_of(h_0, l, call.state);
  z.c_0 = layer_of(c_0, l, call.state);
  z.y = output_of(l, y, call.buffers, call.training);
  z.gates_kept = call.training && !choice_.recompute;
  z.gates = z.gates_kept ? layer.gates.in(call.buffers.reserve) : gates_.in(call.buffers.workspace);
  z.c = call.training ? layer.c.in(call.buffers.reserve) : nullptr;
  return z;
}

Matrix PointwisePlan::chunk_of(const Call& call, float* sequence, std::int64_t width,
                               std::int64_t first) const {
  const std::int64_t rows = call.steps(first) * call.extent.batch;
  return {sequence + first * call.extent.batch * width, choice_.by_columns ? rows : width,
          choice_.by_columns};
}

Matrix PointwisePlan::gates_chunk(const Call& call, const Tensors& z, std::int64_t first) const {
  Matrix chunk = chunk_of(call, z.gates, 4 * problem_.hidden, first);
  if (!z.gates_kept) chunk.data = z.gates;
  return chunk;
}

Matrix PointwisePlan::gates_step(const Call& call, const Tensors& z, std::int64_t t) const {
  const std::int64_t first = call.first_of(t);
  return gates_chunk(call, z, first).from((t - first) * call.extent.batch, 0);
}

Matrix PointwisePlan::c_at(const Call& call, const Tensors& z, std::int64_t t) const {
  if (!call.training) return state_of(call, c_[std::size_t(t % 2)]);
  const std::int64_t first = call.first_of(t);
  return chunk_of(call, z.c, problem_.hidden, first).from((t - first) * call.extent.batch, 0);
}

Matrix PointwisePlan::state_of(const Call& call, const Place& place) const {
  return {place.in(call.buffers.workspace),
          choice_.by_columns ? call.extent.batch : problem_.hidden, choice_.by_columns};
}

void PointwisePlan::bring_in(const float* from, Matrix to, Block block) const {
  if (block.empty()) return;
  if (!to.by_columns) return copy_block(from, to.data, to.ld, block);
  const Matrix part = to.from(block.rows.begin, block.cols.begin);
  if (from == nullptr) {
    for (std::int64_t c = 0; c < block.cols.size(); ++c) {
      std::fill_n(part.data + c * part.ld, block.rows.size(), 0.0f);
    }
    return;
  }
  const std::int64_t at = block.rows.begin * problem_.hidden + block.cols.begin;
  gate_kernels_.transpose({block.rows.size(), block.cols.size()}, {from + at, problem_.hidden},
                          {part.data, part.ld});
}

void PointwisePlan::bring_out(ConstMatrix from, float* to, Block block) const {
  if (block.empty()) return;
  if (!from.by_columns) return copy_block(from.data, to, from.ld, block);
  const ConstMatrix part = from.from(block.rows.begin, block.cols.begin);
  const std::int64_t at = block.rows.begin * problem_.hidden + block.cols.begin;
  gate_kernels_.transpose({block.cols.size(), block.rows.size()}, {part.data, part.ld},
                          {to + at, problem_.hidden});
}

Shape PointwisePlan::shape_of(Block block) const {
  if (block.empty()) return {};
  return choice_.by_columns ? Shape{block.cols.size(), block.rows.size()}
                            : Shape{block.rows.size(), block.cols.size()};
}

PointwiseGates PointwisePlan::gates_of(const Call& call, const Layer& layer, Matrix step,
                                       Block block) const {
  const std::int64_t hidden = problem_.hidden;
  const Matrix part = step.from(block.rows.begin, block.cols.begin);
  const float* const bias = layer.bias.in(call.buffers.packed) + block.cols.begin;
  return {part.data, part.ld, part.by_columns ? hidden * part.ld : hidden,
          problem_.bias == Bias::none ? nullptr : bias, hidden};
}

Status PointwisePlan::forward(Mode mode, Extent extent, const Forward& args,
                              const PlanBuffers& buffers, Stream) {
  const Call c = call(extent, buffers, mode == Mode::training);
  team_.run([&](const TeamShare& share) {
    for (std::int64_t l = 0; l < problem_.layers; ++l) {
      forward_layer(c, l, tensors(c, l, args.x, args.h_0, args.c_0, args.y), args, share);
    }
  });
  return {};
}

Status PointwisePlan::backward_data(Extent extent, const BackwardData& args,
                                    const PlanBuffers& buffers, Stream) {
  const Call c = call(extent, buffers, true);
  team_.run([&](const TeamShare& share) {
    const float* dy = args.dy;
    for (std::int64_t l = problem_.layers - 1; l >= 0; --l) {
      float* const dx = l == 0 ? args.dx : between_[std::size_t(l % 2)].in(buffers.workspace);
      Tensors z = tensors(c, l, args.x, args.h_0, args.c_0, args.y);
      keep_gates(c, l, z);
      backward_layer(c, l, z, args, dy, dx, share);
      dy = dx;
    }
  });
  return {};
}

Status PointwisePlan::backward_weights(Extent extent, const BackwardWeights& args,
                                       const PlanBuffers& buffers, Stream) {
  const Call c = call(extent, buffers, true);
  team_.run([&](const TeamShare& share) {
    for (std::int64_t l = 0; l < problem_.layers; ++l) {
      Tensors z = tensors(c, l, args.x, args.h_0, nullptr, args.y);
      keep_gates(c, l, z);
      weights_layer(c, l, z, args.gradients[l], share.by_units());
    }
  });
  return {};
}

void PointwisePlan::keep_gates(const Call& call, std::int64_t l, Tensors& z) const {
  std::byte* const block = choice_.recompute ? call.buffers.workspace : call.buffers.reserve;
  z.gates = layers_[std::size_t(l)].gates.in(block);
  z.gates_kept = true;
}

}  // namespace rnntune::cpu
