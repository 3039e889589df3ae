// SPDX-License-Identifier: Apache-2.0
#include "cuda/lstm_plan.hpp"

#include <algorithm>
#include <limits>

namespace rnntune::cuda {
namespace {

// A multiprocessor is four parts with a quarter of the registers each; warps take them in such
// pieces, and each part gets as many of a block's warps as the others.
constexpr std::int64_t kWarp = 32, kRegisterUnit = 256, kParts = 4;
constexpr std::int64_t kMostGridY = 65535;
// What an element of a gate kernel moves anyway. A few bytes are the compiler's price for more
// resident warps.
constexpr std::int64_t kMostLocalBytes = 56;

std::string more(const char* what, std::int64_t needed, std::int64_t most) {
  return std::string(what) + ": needs " + std::to_string(needed) + ", at most " +
         std::to_string(most);
}

}  // namespace

std::string why_not_products(const Problem& p, const DeviceInfo&) {
  if (std::string why = why_not_lstm(p); !why.empty()) return why;
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (p.time * p.batch > kMost || 4 * p.hidden > kMost || p.input > kMost) {
    return "T*B, I and 4*H must fit the 31 bits of a BLAS integer";
  }
  return {};
}

std::string why_not_resources(const gpu::KernelResources& uses, const gpu::Limits& limits,
                              const gpu::LaunchShape& shape) {
  const std::int64_t threads = std::int64_t{shape.block.x} * shape.block.y * shape.block.z;
  const std::int64_t most = uses.max_threads > 0 ? uses.max_threads : limits.max_threads_per_block;
  if (threads > most) return more("threads of a block", threads, most);
  const std::int64_t warps = (threads + kWarp - 1) / kWarp;
  const std::int64_t of_warp =
      (uses.registers * kWarp + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
  const std::int64_t of_block = (warps + kParts - 1) / kParts * kParts * of_warp;
  if (of_block > limits.registers_per_multiprocessor) {
    return more("registers of a block", of_block, limits.registers_per_multiprocessor);
  }
  const std::int64_t shared = std::int64_t{uses.static_shared_bytes} + shape.shared_bytes;
  if (shared > limits.shared_bytes_per_block) {
    return more("shared memory of a block", shared, limits.shared_bytes_per_block);
  }
  if (uses.local_bytes > kMostLocalBytes) {
    return more("bytes that a thread keeps in memory for want of registers", uses.local_bytes,
                kMostLocalBytes);
  }
  return {};
}

gpu::KernelId kernel_id(const char* file, const std::string& name,
                        std::initializer_list<std::string> arguments) {
  std::string list;
  for (const std::string& one : arguments) list += (list.empty() ? "" : ", ") + one;
  return {file, "rnntune::cuda::" + name + "<" + list + ">"};
}

gpu::LaunchShape grid_of(std::int64_t rows_all, std::int64_t columns, int rows, int width) {
  const std::int64_t across = kWarp * width;
  gpu::LaunchShape shape;
  shape.block = {static_cast<unsigned>(kWarp), static_cast<unsigned>(rows)};
  shape.grid = {static_cast<unsigned>((columns + across - 1) / across),
                static_cast<unsigned>(std::min((rows_all + rows - 1) / rows, kMostGridY))};
  return shape;
}

bool are_vectors(std::int64_t columns, std::initializer_list<const float*> arrays) {
  return columns % 4 == 0 && std::all_of(arrays.begin(), arrays.end(), [](const float* array) {
           return reinterpret_cast<std::uintptr_t>(array) % 16 == 0;
         });
}

LstmPlan::LstmPlan(const Problem& problem, std::shared_ptr<gpu::GpuDevice> device,
                   Products products, std::size_t lanes)
    : problem_(problem),
      device_(std::move(device)),
      products_(std::move(products)),
      layers_(static_cast<std::size_t>(problem.layers)),
      between_(std::min(layers_.size() - 1, std::max<std::size_t>(lanes, 2))),
      workspaces_(lanes) {
  const Checked gates = Checked(4) * problem.hidden;
  const Checked sequence = Checked(problem.batch) * problem.hidden * problem.time;
  for (std::int64_t l = 0; l < problem.layers; ++l) {
    Layer& layer = layers_[static_cast<std::size_t>(l)];
    layer.input = problem.layer_input(l);
    layer.weight_ih = memory_.packed.add(gates * layer.input);
    layer.weight_hh = memory_.packed.add(gates * problem.hidden);
    layer.bias = memory_.packed.add(gates);
    layer.y = memory_.reserve.add(l + 1 < problem.layers ? sequence : Checked(0));
  }
  for (Place& place : between_) place = memory_.workspace.add(sequence);
}

Status LstmPlan::build(std::vector<Wanted> wanted) {
  wanted.push_back({kernel_id("operations.cuh", "apply", {"rnntune::cuda::Add"}),
                    grid_of(1, 4 * problem_.hidden, 1, 4), &add_});
  std::vector<gpu::KernelId> ids;
  for (const Wanted& one : wanted) ids.push_back(one.id);
  const auto built = device_->build(ids);
  if (!built.ok()) return built.error();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const KernelPtr& kernel = (*built)[i];
    const std::string why =
        why_not_resources(kernel->resources(), device_->limits(), wanted[i].block);
    if (!why.empty()) {
      return Error{ErrorCode::resource_limit, kernel->id().expression + ": " + why};
    }
    *wanted[i].kernel = kernel;
  }
  return {};
}

Status LstmPlan::finish() {
  Status status;
  Queue queue(*device_, products_, status);
  rehearse(queue);
  const auto bytes = static_cast<std::int64_t>(products_.workspace_bytes());
  const auto slack = static_cast<std::int64_t>(bytes == 0 ? 0 : kGemmWorkspaceSlack);
  for (Place& place : workspaces_) {
    place = memory_.workspace.add((bytes + slack + 3) / 4);
  }
  return status;
}

Status LstmPlan::pack(const LayerWeights* weights, const PlanBuffers& buffers, Stream stream) {
  Status status;
  Queue queue(*device_, products_, stream, nullptr, status);
  const std::int64_t gates = 4 * problem_.hidden;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    queue.copy(layer.weight_ih.in(buffers.packed), weights[l].weight_ih, gates * layer.input);
    queue.copy(layer.weight_hh.in(buffers.packed), weights[l].weight_hh, gates * problem_.hidden);
    if (problem_.bias == Bias::none) continue;
    float* const bias = layer.bias.in(buffers.packed);
    if (problem_.bias == Bias::one) {
      queue.copy(bias, weights[l].bias_ih, gates);
      continue;
    }
    OperationArguments sum;
    sum.a = weights[l].bias_ih;
    sum.b = weights[l].bias_hh;
    sum.y = bias;
    sum.rows = 1;
    sum.columns = static_cast<int>(gates);
    sum.vectors = are_vectors(gates, {sum.a, sum.b});
    queue.launch(*add_, grid_of(1, gates, 1, 4), sum);
  }
  return status;
}

ConstMatrix LstmPlan::input_of(const Call& call, std::int64_t l, const float* x,
                               const float* y) const {
  return {l == 0 ? x : output_of(call, l - 1, y), layers_[static_cast<std::size_t>(l)].input,
          false};
}

const float* LstmPlan::output_of(const Call& call, std::int64_t l, const float* y) const {
  if (l + 1 == problem_.layers) return y;
  const auto at = static_cast<std::size_t>(l);
  return call.training ? layers_[at].y.in(call.buffers.reserve)
                       : between_[at % between_.size()].in(call.buffers.workspace);
}

float* LstmPlan::dx_of(const Call& call, std::int64_t l, float* dx) const {
  if (l == 0) return dx;
  return between_[static_cast<std::size_t>(l) % between_.size()].in(call.buffers.workspace);
}

}  // namespace rnntune::cuda
