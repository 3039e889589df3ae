// SPDX-License-Identifier: Apache-2.0
// The pointwise plan: where everything lies, the calls, and what may run at once.
#include "cuda/pointwise.hpp"

namespace rnntune::cuda {
namespace {

// An inference needs no gates afterwards: its chunks have about this many rows, enough for a
// product at full speed, whatever the config keeps in training.
constexpr std::int64_t kInferenceRows = 4096;
constexpr int kSumRows = 32;  // of a block that sums, 32 threads each
constexpr int kTileRows = 8;  // of a block that transposes

std::uint64_t word(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }
std::uint64_t word(std::int64_t value) { return static_cast<std::uint64_t>(value); }

template <class... Values>
void put(Graphs::Key& key, const Values&... values) {
  (key.push_back(word(values)), ...);
}

void put_call(Graphs::Key& key, std::int64_t kind, Extent extent, const PlanBuffers& buffers) {
  key.clear();
  put(key, kind, extent.time, extent.batch, buffers.packed, buffers.workspace, buffers.reserve);
}

}  // namespace

Result<std::unique_ptr<Plan>> PointwisePlan::make(const Problem& problem,
                                                  std::shared_ptr<gpu::GpuDevice> device,
                                                  const PointwiseChoice& choice) {
  std::unique_ptr<PointwisePlan> plan(new PointwisePlan(problem, std::move(device), choice));
  const PlanMemory& memory = plan->memory_;
  if (!memory.ok()) return memory.check(problem, std::move(plan));
  if (Status status = plan->build_kernels(); !status.ok()) return status.error();
  if (Status status = plan->create_streams(); !status.ok()) return status.error();
  if (Status status = plan->finish(); !status.ok()) return status.error();
  return memory.check(problem, std::move(plan));
}

PointwisePlan::PointwisePlan(const Problem& problem, std::shared_ptr<gpu::GpuDevice> device,
                             const PointwiseChoice& choice)
    : LstmPlan(problem, device, Products(device, choice.step_gemm, choice.sequence_gemm),
               choice.wavefront ? static_cast<std::size_t>(problem.layers) : 1),
      choice_(choice),
      lanes_(choice.wavefront ? static_cast<std::size_t>(problem.layers) : 1),
      handles_(device) {
  lay_out();
}

void PointwisePlan::lay_out() {
  const Problem& p = problem_;
  const Checked step = Checked(p.batch) * p.hidden, sequence = step * p.time;
  const std::int64_t steps = choice_.chunk == 0 ? p.time : std::min(choice_.chunk, p.time);
  training_rows_ = steps * p.batch;
  const bool recomputes = choice_.keep == Keep::recompute;
  const bool turned_last = choice_.weights_thb != choice_.forward_thb;
  Arena& workspace = memory_.workspace;
  for (std::int64_t l = 0; l < p.layers; ++l) {
    gates_.push_back(memory_.reserve.add(recomputes ? Checked(0) : sequence * 4));
    c_.push_back(memory_.reserve.add(sequence));
    recomputed_.push_back(
        workspace.add(recomputes && choice_.direct() ? sequence * 4 : Checked(0)));
    turned_.push_back(workspace.add(turned_last ? sequence * 4 : Checked(0)));
  }
  lane_rows_ = recomputes && !choice_.direct() ? training_rows_
                                               : std::min(training_rows_, kInferenceRows + p.batch);
  const bool turned_here = choice_.turned() && !turned_last;
  const Checked row = Checked(4) * p.hidden;
  for (Lane& lane : lanes_) {
    lane.gates = workspace.add(row * lane_rows_);
    lane.turned = workspace.add(turned_here ? row * training_rows_ : Checked(0));
    lane.c_0 = workspace.add(choice_.forward_thb ? step : Checked(0));
    for (Place* place : {&lane.c, &lane.dh, &lane.dc}) *place = workspace.add(step);
  }
}

Status PointwisePlan::build_kernels() {
  const PointwiseChoice& z = choice_;
  const std::string vector = std::to_string(z.vector);
  const gpu::LaunchShape block = grid_of(1, 1, z.rows);
  const auto forward = [&](bool keep) {
    return z.forward_thb
               ? kernel_id("pointwise_tile.cuh", "pointwise_forward_tile", {argument(keep)})
               : kernel_id("pointwise.cuh", "pointwise_forward", {vector, argument(keep)});
  };
  const std::string activate = argument(z.keep != Keep::gates);
  const gpu::KernelId backward =
      z.plain() ? kernel_id("pointwise.cuh", "pointwise_backward", {vector, activate})
                : kernel_id("pointwise_tile.cuh", "pointwise_backward_tile",
                            {argument(z.forward_thb), argument(z.direct()), argument(z.turned()),
                             activate});
  std::vector<Wanted> wanted{{forward(z.keep == Keep::gates), block, &kernels_.forward_training},
                             {forward(false), block, &kernels_.forward_inference},
                             {backward, block, &kernels_.backward}};
  if (problem_.bias != Bias::none) {
    const char* const name = z.weights_thb ? "bias_gradient_thb" : "bias_gradient_tbh";
    wanted.push_back({kernel_id("bias_gradient.cuh", name, {argument(z.atomic_bias)}),
                      grid_of(1, 1, kSumRows), &kernels_.sums});
  }
  if (z.forward_thb) {
    wanted.push_back({kernel_id("pointwise_tile.cuh", "transpose", {"float"}),
                      grid_of(1, 1, kTileRows), &kernels_.transpose});
  }
  return build(std::move(wanted));
}

// One stream and event per lane and an event that all of them begin with; a stream to record
// graphs on.
Status PointwisePlan::create_streams() {
  const std::size_t lanes = choice_.wavefront ? lanes_.size() : 0;
  Status status = handles_.create(lanes + (choice_.graph ? 1 : 0), lanes == 0 ? 0 : lanes + 1);
  if (status.ok() && choice_.graph) graphs_.emplace(device_, handles_.stream(lanes));
  return status;
}

void PointwisePlan::rehearse(Queue& queue) {
  const PlanBuffers buffers{nowhere<std::byte>(), nowhere<std::byte>(), nowhere<std::byte>()};
  const Extent extent{problem_.time, problem_.batch};
  float* const some = nowhere<float>();
  const LayerGradients gradient{some, some, nullptr, nullptr, nullptr};
  const std::vector<LayerGradients> gradients(layers_.size(), gradient);
  const Forward forward{0, 0, some, some, some, some, some, some};
  const BackwardData backward{some, some, some, some, some, some, some, some, some, some};
  const BackwardWeights weights{some, some, some, gradients.data()};
  for (const bool training : {false, true}) {
    const Chunked call = chunked(extent, buffers, training);
    visit(queue, Order::upwards, call.count(),
          [&](Queue& q, std::int64_t l, std::int64_t s) { forward_chunk(q, call, forward, l, s); });
  }
  const Chunked call = chunked(extent, buffers, true);
  visit(queue, Order::downwards, call.count(),
        [&](Queue& q, std::int64_t l, std::int64_t s) { backward_chunk(q, call, backward, l, s); });
  visit(queue, Order::independent, 1,
        [&](Queue& q, std::int64_t l, std::int64_t) { weights_layer(q, call, weights, l); });
}

PointwisePlan::Chunked PointwisePlan::chunked(Extent extent, const PlanBuffers& buffers,
                                              bool training) const {
  std::int64_t chunk = choice_.chunk == 0 ? extent.time : std::min(choice_.chunk, extent.time);
  if (!training) chunk = std::min(chunk, (kInferenceRows + extent.batch - 1) / extent.batch);
  return {call_of(extent, buffers, training), chunk};
}

// ---- calls

Status PointwisePlan::forward(Mode mode, Extent extent, const Forward& args,
                              const PlanBuffers& buffers, Stream stream) {
  const Chunked call = chunked(extent, buffers, mode == Mode::training);
  put_call(key_, call.training ? 1 : 0, extent, buffers);
  put(key_, args.x, args.h_0, args.c_0, args.y, args.h_n, args.c_n);
  return run(stream, [&](Stream on) {
    return queue_chunks(call, Order::upwards, call.count(), on,
                        [&](Queue& queue, std::int64_t l, std::int64_t s) {
                          forward_chunk(queue, call, args, l, s);
                        });
  });
}

Status PointwisePlan::backward_data(Extent extent, const BackwardData& args,
                                    const PlanBuffers& buffers, Stream stream) {
  const Chunked call = chunked(extent, buffers, true);
  put_call(key_, 2, extent, buffers);
  put(key_, args.x, args.h_0, args.c_0, args.y, args.dy, args.dh_n, args.dc_n, args.dx, args.dh_0,
      args.dc_0);
  return run(stream, [&](Stream on) {
    return queue_chunks(call, Order::downwards, call.count(), on,
                        [&](Queue& queue, std::int64_t l, std::int64_t s) {
                          backward_chunk(queue, call, args, l, s);
                        });
  });
}

Status PointwisePlan::backward_weights(Extent extent, const BackwardWeights& args,
                                       const PlanBuffers& buffers, Stream stream) {
  const Chunked call = chunked(extent, buffers, true);
  put_call(key_, 3, extent, buffers);
  put(key_, args.x, args.h_0, args.y);
  for (std::int64_t l = 0; l < problem_.layers; ++l) {
    const LayerGradients& to = args.gradients[l];
    put(key_, to.weight_ih, to.weight_hh, to.bias_ih, to.bias_hh);
  }
  return run(stream, [&](Stream on) {
    return queue_chunks(
        call, Order::independent, 1, on,
        [&](Queue& queue, std::int64_t l, std::int64_t) { weights_layer(queue, call, args, l); });
  });
}

template <class QueueAll>
Status PointwisePlan::run(Stream stream, const QueueAll& queue_all) {
  return graphs_ ? graphs_->run(key_, stream, queue_all) : queue_all(stream);
}

// Layer by layer. A rehearsal sees every shape in the first chunks and the last one.
template <class Chunk>
void PointwisePlan::visit(Queue& queue, Order order, std::int64_t count, const Chunk& chunk) const {
  const std::int64_t layers = problem_.layers;
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::int64_t l = order == Order::downwards ? layers - 1 - i : i;
    for (std::int64_t j = 0; j < count; ++j) {
      if (queue.rehearses() && j == 2) j = std::max(j, count - 1);
      chunk(queue, l, order == Order::downwards ? count - 1 - j : j);
    }
  }
}

// In a wavefront every layer has a stream of its own and waits for the layer before it, chunk by
// chunk, so that at any time each layer may be a chunk behind. An event of a layer is recorded
// again for each chunk; who waits for it has been told to before that.
template <class Chunk>
Status PointwisePlan::queue_chunks(const Chunked& call, Order order, std::int64_t count,
                                   Stream stream, const Chunk& chunk) const {
  Status status;
  Queue main = queue_on(stream, call, 0, status);
  if (!choice_.wavefront) {
    visit(main, order, count, chunk);
    return status;
  }
  const std::int64_t layers = problem_.layers;
  const gpu::Event begin = handles_.event(lanes_.size());
  const auto queue_of = [&](std::int64_t l) {
    const auto lane = static_cast<std::size_t>(l);
    return queue_on(handles_.stream(lane), call, lane, status);
  };
  const auto done = [&](std::int64_t l) { return handles_.event(static_cast<std::size_t>(l)); };
  main.record(begin);
  for (std::int64_t l = 0; l < layers; ++l) queue_of(l).wait(begin);
  for (std::int64_t j = 0; j < count; ++j) {
    for (std::int64_t i = 0; i < layers; ++i) {
      const bool down = order == Order::downwards;
      const std::int64_t l = down ? layers - 1 - i : i, before = down ? l + 1 : l - 1;
      Queue queue = queue_of(l);
      if (i > 0 && order != Order::independent) queue.wait(done(before));
      chunk(queue, l, down ? count - 1 - j : j);
      queue.record(done(l));
    }
  }
  for (std::int64_t l = 0; l < layers; ++l) main.wait(done(l));
  return status;
}

}  // namespace rnntune::cuda
