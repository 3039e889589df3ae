// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/unfused.hpp"

namespace rnntune::cuda {
namespace {

constexpr int kRows = 8;      // of a block, 32 threads each
constexpr int kSumRows = 32;  // of a block that sums

}  // namespace

Result<std::unique_ptr<Plan>> UnfusedPlan::make(const Problem& problem,
                                                std::shared_ptr<gpu::GpuDevice> device,
                                                bool per_gate) {
  std::unique_ptr<UnfusedPlan> plan(new UnfusedPlan(problem, std::move(device), per_gate));
  const PlanMemory& memory = plan->memory_;
  if (!memory.ok()) return memory.check(problem, std::move(plan));
  if (Status status = plan->build_kernels(); !status.ok()) return status.error();
  if (Status status = plan->finish(); !status.ok()) return status.error();
  return memory.check(problem, std::move(plan));
}

UnfusedPlan::UnfusedPlan(const Problem& problem, std::shared_ptr<gpu::GpuDevice> device,
                         bool per_gate)
    : LstmPlan(problem, device, Products(device, 0, 0), 1), per_gate_(per_gate) {
  const Checked step = Checked(problem.batch) * problem.hidden;
  const Checked sequence = step * problem.time;
  for (std::int64_t l = 0; l < problem.layers; ++l) {
    gates_.push_back(memory_.reserve.add(sequence * 4));
    c_.push_back(memory_.reserve.add(sequence));
    tanh_c_.push_back(memory_.reserve.add(sequence));
  }
  for (Place* place :
       {&zeros_, &infer_tanh_c_, &dh_, &dc_, &temporary_, &gradient_, &infer_c_[0], &infer_c_[1]}) {
    *place = memory_.workspace.add(step);
  }
  infer_gates_ = memory_.workspace.add(step * 4);
}

Status UnfusedPlan::build_kernels() {
  std::vector<Wanted> wanted;
  const auto want = [&](const char* operation, KernelPtr* kernel) {
    wanted.push_back(
        {kernel_id("operations.cuh", "apply", {"rnntune::cuda::" + std::string(operation)}),
         grid_of(problem_.batch, problem_.hidden, kRows, 4), kernel});
  };
  want("Add", &kernels_.add);
  want("Multiply", &kernels_.multiply);
  want("MultiplyAdd", &kernels_.multiply_add);
  want("Sigmoid", &kernels_.sigmoid);
  want("Tanh", &kernels_.tanh);
  want("SigmoidBackward", &kernels_.sigmoid_backward);
  want("TanhBackward", &kernels_.tanh_backward);
  if (problem_.bias != Bias::none) {
    wanted.push_back({kernel_id("bias_gradient.cuh", "bias_gradient_tbh", {argument(false)}),
                      grid_of(1, 4 * problem_.hidden, kSumRows), &kernels_.sums});
  }
  return build(std::move(wanted));
}

void UnfusedPlan::rehearse(Queue& queue) {
  const PlanBuffers buffers{nowhere<std::byte>(), nowhere<std::byte>(), nowhere<std::byte>()};
  // No shape depends on how many time steps there are.
  const Extent extent{std::min<std::int64_t>(problem_.time, 2), problem_.batch};
  float* const some = nowhere<float>();
  const std::vector<LayerGradients> gradients(layers_.size(),
                                              {some, some, nullptr, nullptr, nullptr});
  run_forward(queue, call_of(extent, buffers, false), {0, 0, some, some, some, some, some, some});
  const Call training = call_of(extent, buffers, true);
  run_forward(queue, training, {0, 0, some, some, some, some, some, some});
  run_backward(queue, training, {some, some, some, some, some, some, some, some, some, some});
  run_weights(queue, training, {some, some, some, gradients.data()});
}

UnfusedPlan::Tensors UnfusedPlan::tensors(const Call& call, std::int64_t l, const float* x,
                                          const float* h_0, const float* c_0,
                                          const float* y) const {
  const auto at = static_cast<std::size_t>(l);
  std::byte* const workspace = call.buffers.workspace;
  std::byte* const reserve = call.buffers.reserve;
  Tensors z;
  z.x = input_of(call, l, x, y);
  z.h_0 = layer_of(h_0, l, call.state);
  z.c_0 = c_0 == nullptr ? zeros_.in(workspace) : c_0 + l * call.state;
  z.y = output_of(call, l, y);
  z.gates = call.training ? gates_[at].in(reserve) : infer_gates_.in(workspace);
  z.c = call.training ? c_[at].in(reserve) : nullptr;
  z.tanh_c = call.training ? tanh_c_[at].in(reserve) : infer_tanh_c_.in(workspace);
  return z;
}

float* UnfusedPlan::c_at(const Call& call, const Tensors& z, std::int64_t t) const {
  return call.training ? z.c + t * call.state
                       : infer_c_[static_cast<std::size_t>(t % 2)].in(call.buffers.workspace);
}

void UnfusedPlan::operate(Queue& queue, const KernelPtr& kernel, std::int64_t rows,
                          std::int64_t columns, ConstMatrix a, ConstMatrix b, Matrix y) const {
  OperationArguments p;
  p.a = a.data;
  p.b = b.data;
  p.y = y.data;
  p.lda = a.ld;
  p.ldb = b.ld;
  p.ldy = y.ld;
  p.rows = static_cast<int>(rows);
  p.columns = static_cast<int>(columns);
  // Strides are 0, H or 4H.
  p.vectors = problem_.hidden % 4 == 0 && are_vectors(columns, {p.a, p.b, p.y});
  queue.launch(*kernel, grid_of(rows, columns, kRows, 4), p);
}

void UnfusedPlan::to_gates(Queue& queue, std::int64_t rows, std::int64_t depth, ConstMatrix a,
                           ConstMatrix w, Matrix gates, float beta) const {
  const std::int64_t width = per_gate_ ? problem_.hidden : 4 * problem_.hidden;
  for (std::int64_t q = 0; q < 4 * problem_.hidden; q += width) {
    queue.multiply(Role::step, product(rows, width, depth, a, w.from(q, 0).transposed(),
                                       gates.from(0, q), beta));
  }
}

void UnfusedPlan::from_gates(Queue& queue, std::int64_t rows, std::int64_t columns,
                             ConstMatrix gates, ConstMatrix w, Matrix out) const {
  const std::int64_t width = per_gate_ ? problem_.hidden : 4 * problem_.hidden;
  for (std::int64_t q = 0; q < 4 * problem_.hidden; q += width) {
    queue.multiply(Role::step, product(rows, columns, width, gates.from(0, q), w.from(q, 0), out,
                                       q == 0 ? 0.0f : 1.0f));
  }
}

void UnfusedPlan::to_weights(Queue& queue, std::int64_t rows, std::int64_t columns,
                             ConstMatrix gates, ConstMatrix a, Matrix w) const {
  const std::int64_t width = per_gate_ ? problem_.hidden : 4 * problem_.hidden;
  for (std::int64_t q = 0; q < 4 * problem_.hidden; q += width) {
    queue.multiply(Role::step, product(width, columns, rows, gates.from(0, q).transposed(), a,
                                       w.from(q, 0), 1));
  }
}

Status UnfusedPlan::forward(Mode mode, Extent extent, const Forward& args,
                            const PlanBuffers& buffers, Stream stream) {
  const Call call = call_of(extent, buffers, mode == Mode::training);
  Status status;
  Queue queue = queue_on(stream, call, 0, status);
  run_forward(queue, call, args);
  return status;
}

void UnfusedPlan::run_forward(Queue& queue, const Call& call, const Forward& args) const {
  if (args.c_0 == nullptr) queue.zero(zeros_.in(call.buffers.workspace), call.state);
  for (std::int64_t l = 0; l < problem_.layers; ++l) {
    const Tensors z = tensors(call, l, args.x, args.h_0, args.c_0, args.y);
    const std::int64_t last = call.extent.time - 1;
    // What this layer writes is not const: y of the call, the reserve or the workspace.
    float* const y = const_cast<float*>(z.y);
    for (std::int64_t t = 0; t <= last; ++t) {
      forward_step(queue, call, layers_[static_cast<std::size_t>(l)], z, t, y + t * call.state);
    }
    float* const h_n = layer_of(args.h_n, l, call.state);
    float* const c_n = layer_of(args.c_n, l, call.state);
    if (h_n != nullptr) queue.copy(h_n, y + last * call.state, call.state);
    if (c_n != nullptr) queue.copy(c_n, c_at(call, z, last), call.state);
  }
}

void UnfusedPlan::forward_step(Queue& queue, const Call& call, const Layer& layer, const Tensors& z,
                               std::int64_t t, float* h) const {
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const Matrix gates{z.gates + (call.training ? t * batch * 4 * hidden : 0), 4 * hidden, false};
  const Matrix tanh_c{z.tanh_c + (call.training ? t * call.state : 0), hidden, false};
  const Matrix c{c_at(call, z, t), hidden, false}, h_out{h, hidden, false};
  const ConstMatrix c_before{t == 0 ? z.c_0 : c_at(call, z, t - 1), hidden, false};
  const ConstMatrix h_before{t == 0 ? z.h_0 : h - call.state, hidden, false};
  to_gates(queue, batch, layer.input, z.x.from(t * batch, 0), weight_ih(call, layer), gates, 0);
  if (h_before) to_gates(queue, batch, hidden, h_before, weight_hh(call, layer), gates, 1);

  const auto run = [&](const KernelPtr& kernel, ConstMatrix a, ConstMatrix b, Matrix y) {
    operate(queue, kernel, batch, hidden, a, b, y);
  };
  const auto gate = [&](std::int64_t q) { return gates.from(0, q * hidden); };
  const Matrix i = gate(0), f = gate(1), g = gate(2), o = gate(3);
  if (const float* const b = bias(call, layer)) {
    operate(queue, kernels_.add, batch, 4 * hidden, gates, {b, 0, false}, gates);
  }
  run(kernels_.sigmoid, i, {}, i);
  run(kernels_.sigmoid, f, {}, f);
  run(kernels_.tanh, g, {}, g);
  run(kernels_.sigmoid, o, {}, o);
  run(kernels_.multiply, f, c_before, c);
  run(kernels_.multiply_add, i, g, c);
  run(kernels_.tanh, c, {}, tanh_c);
  run(kernels_.multiply, o, tanh_c, h_out);
}

Status UnfusedPlan::backward_data(Extent extent, const BackwardData& args,
                                  const PlanBuffers& buffers, Stream stream) {
  const Call call = call_of(extent, buffers, true);
  Status status;
  Queue queue = queue_on(stream, call, 0, status);
  run_backward(queue, call, args);
  return status;
}

void UnfusedPlan::run_backward(Queue& queue, const Call& call, const BackwardData& args) const {
  if (args.c_0 == nullptr) queue.zero(zeros_.in(call.buffers.workspace), call.state);
  const float* dy = args.dy;
  for (std::int64_t l = problem_.layers - 1; l >= 0; --l) {
    float* const dx = dx_of(call, l, args.dx);
    const Tensors z = tensors(call, l, args.x, args.h_0, args.c_0, args.y);
    backward_layer(queue, call, l, z, args, dy, dx);
    dy = dx;
  }
}

void UnfusedPlan::backward_layer(Queue& queue, const Call& call, std::int64_t l, const Tensors& z,
                                 const BackwardData& args, const float* dy, float* dx) const {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  float* const dh = dh_.in(call.buffers.workspace);
  float* const dc = dc_.in(call.buffers.workspace);
  const auto begin = [&](float* state, const float* from) {
    if (from == nullptr) {
      queue.zero(state, call.state);
    } else {
      queue.copy(state, from, call.state);
    }
  };
  begin(dh, layer_of(args.dh_n, l, call.state));
  begin(dc, layer_of(args.dc_n, l, call.state));
  for (std::int64_t t = call.extent.time - 1; t >= 0; --t) {
    backward_step(queue, call, z, t, dy + t * call.state);
    const ConstMatrix dgates{z.gates + t * batch * 4 * hidden, 4 * hidden, false};
    float* const dh_out = t > 0 ? dh : layer_of(args.dh_0, l, call.state);
    if (dh_out != nullptr) {
      from_gates(queue, batch, hidden, dgates, weight_hh(call, layer), {dh_out, hidden, false});
    }
    if (dx != nullptr) {
      from_gates(queue, batch, layer.input, dgates, weight_ih(call, layer),
                 {dx + t * batch * layer.input, layer.input, false});
    }
  }
  if (args.dc_0 != nullptr) queue.copy(args.dc_0 + l * call.state, dc, call.state);
}

void UnfusedPlan::backward_step(Queue& queue, const Call& call, const Tensors& z, std::int64_t t,
                                const float* dy) const {
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  const auto run = [&](const KernelPtr& kernel, ConstMatrix a, ConstMatrix b, Matrix y) {
    operate(queue, kernel, batch, hidden, a, b, y);
  };
  const Matrix gates{z.gates + t * batch * 4 * hidden, 4 * hidden, false};
  const auto gate = [&](std::int64_t q) { return gates.from(0, q * hidden); };
  const auto scratch = [&](const Place& place) {
    return Matrix{place.in(call.buffers.workspace), hidden, false};
  };
  const Matrix i = gate(0), f = gate(1), g = gate(2), o = gate(3);
  const Matrix dh = scratch(dh_), dc = scratch(dc_), d = scratch(temporary_);
  const Matrix dg = scratch(gradient_);
  const ConstMatrix tanh_c{z.tanh_c + t * call.state, hidden, false};
  const ConstMatrix c_before{t == 0 ? z.c_0 : z.c + (t - 1) * call.state, hidden, false};
  run(kernels_.add, ConstMatrix{dy, hidden, false}, dh, dh);
  run(kernels_.multiply, dh, o, d);
  run(kernels_.tanh_backward, d, tanh_c, d);
  run(kernels_.add, dc, d, dc);
  run(kernels_.multiply, dh, tanh_c, d);
  run(kernels_.sigmoid_backward, d, o, o);
  run(kernels_.multiply, dc, g, d);
  run(kernels_.multiply, dc, i, dg);
  run(kernels_.sigmoid_backward, d, i, i);
  run(kernels_.tanh_backward, dg, g, g);
  run(kernels_.multiply, dc, c_before, d);
  run(kernels_.multiply, dc, f, dc);
  run(kernels_.sigmoid_backward, d, f, f);
}

Status UnfusedPlan::backward_weights(Extent extent, const BackwardWeights& args,
                                     const PlanBuffers& buffers, Stream stream) {
  const Call call = call_of(extent, buffers, true);
  Status status;
  Queue queue = queue_on(stream, call, 0, status);
  run_weights(queue, call, args);
  return status;
}

void UnfusedPlan::run_weights(Queue& queue, const Call& call, const BackwardWeights& args) const {
  const std::int64_t hidden = problem_.hidden, batch = call.extent.batch;
  for (std::int64_t l = 0; l < problem_.layers; ++l) {
    const Tensors z = tensors(call, l, args.x, args.h_0, nullptr, args.y);
    const LayerGradients& to = args.gradients[l];
    const std::int64_t input = layers_[static_cast<std::size_t>(l)].input;
    for (std::int64_t t = 0; t < call.extent.time; ++t) {
      const ConstMatrix dgates{z.gates + t * batch * 4 * hidden, 4 * hidden, false};
      const ConstMatrix h_before{t == 0 ? z.h_0 : z.y + (t - 1) * call.state, hidden, false};
      to_weights(queue, batch, input, dgates, z.x.from(t * batch, 0), {to.weight_ih, input, false});
      if (h_before) {
        to_weights(queue, batch, hidden, dgates, h_before, {to.weight_hh, hidden, false});
      }
      if (problem_.bias == Bias::none) continue;
      BiasGradientArguments sums;
      sums.dgates = dgates.data;
      sums.ld = dgates.ld;
      sums.rows = batch;
      sums.columns = 4 * hidden;
      sums.db = to.bias_ih;
      sums.db_too = problem_.bias == Bias::two ? to.bias_hh : nullptr;
      queue.launch(*kernels_.sums, grid_of(1, 4 * hidden, kSumRows), sums);
    }
  }
}

}  // namespace rnntune::cuda
