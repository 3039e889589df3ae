// SPDX-License-Identifier: Apache-2.0
#include "tuner/inspect/inspect.hpp"

#include <utility>

#include "paths.hpp"

namespace rnntune::tuner {
namespace {

// Memory of a device while a step runs.
class Tensors {
 public:
  explicit Tensors(Device& device) : device_(device) {}
  Tensors(const Tensors&) = delete;
  ~Tensors() {
    for (void* memory : memory_) device_.release(memory);
  }

  std::byte* bytes(std::size_t count) {
    const Result<void*> memory = count == 0 ? nullptr : device_.allocate(count);
    if (!memory.ok()) status_ = memory.error();
    if (!memory.ok() || *memory == nullptr) return nullptr;
    memory_.push_back(*memory);
    return static_cast<std::byte*>(*memory);
  }
  float* floats(std::int64_t count) {
    return reinterpret_cast<float*>(bytes(static_cast<std::size_t>(count) * sizeof(float)));
  }
  Memory memory(std::size_t count) { return {bytes(count), count}; }
  const Status& status() const { return status_; }

 private:
  Device& device_;
  std::vector<void*> memory_;
  Status status_;
};

LayerGradients weights_of(const Problem& p, std::int64_t layer, Tensors& tensors) {
  const std::int64_t rows = p.gates() * p.hidden;
  return {.weight_ih = tensors.floats(rows * p.layer_input(layer)),
          .weight_hh = tensors.floats(rows * p.output()),
          .bias_ih = p.bias == Bias::none ? nullptr : tensors.floats(rows),
          .bias_hh = p.bias == Bias::two ? tensors.floats(rows) : nullptr,
          .weight_hr = p.projection == 0 ? nullptr : tensors.floats(p.projection * p.hidden)};
}

std::vector<cuda::ToCompile> kernels_of(const simt::Recording& recording) {
  std::vector<cuda::ToCompile> kernels;
  for (const simt::RecordedKernel& row : recording.kernels) {
    kernels.push_back({row.kernel, static_cast<int>(row.block.x * row.block.y * row.block.z),
                       static_cast<int>(row.shared_bytes)});
  }
  return kernels;
}

}  // namespace

Result<Rnn> make_rnn(const Problem& problem, const Explanation& choice,
                     std::shared_ptr<Device> device) {
  RnnOptions options;
  options.config = choice.config;
  return Rnn::create(problem, std::move(device), options);
}

Status run_step(Rnn& rnn, Device& device) {
  const Problem& p = rnn.problem();
  const TensorCounts n = tensor_counts(p);
  Tensors tensors(device);
  std::vector<LayerWeights> weights;
  std::vector<LayerGradients> gradients;
  for (std::int64_t i = 0; i < p.layers * p.directions; ++i) {
    const LayerGradients w = weights_of(p, i / p.directions, tensors);
    weights.push_back({w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh, w.weight_hr});
    gradients.push_back(weights_of(p, i / p.directions, tensors));
  }
  const float *const x = tensors.floats(n.x), *const h_0 = tensors.floats(n.h),
                     *const c_0 = tensors.floats(n.c);
  float* const y = tensors.floats(n.y);
  const Forward forward{.x = x,
                        .h_0 = h_0,
                        .c_0 = c_0,
                        .y = y,
                        .h_n = tensors.floats(n.h),
                        .c_n = tensors.floats(n.c)};
  const BackwardData data{.x = x,
                          .h_0 = h_0,
                          .c_0 = c_0,
                          .y = y,
                          .dy = tensors.floats(n.y),
                          .dh_n = tensors.floats(n.h),
                          .dc_n = tensors.floats(n.c),
                          .dx = tensors.floats(n.x),
                          .dh_0 = tensors.floats(n.h),
                          .dc_0 = tensors.floats(n.c)};
  const Buffers buffers{tensors.memory(rnn.packed_bytes()), tensors.memory(rnn.workspace_bytes()),
                        tensors.memory(rnn.reserve_bytes())};
  Status status = tensors.status();
  if (status.ok()) status = rnn.pack(weights.data(), buffers.packed);
  if (status.ok()) status = rnn.forward(Mode::training, forward, buffers);
  if (status.ok()) status = rnn.backward_data(data, buffers);
  if (status.ok()) {
    status =
        rnn.backward_weights({.x = x, .h_0 = h_0, .y = y, .gradients = gradients.data()}, buffers);
  }
  return status.ok() ? device.synchronize() : status;
}

Result<Inspection> inspect(const Problem& problem, const Explanation& choice,
                           const InspectedGpu& gpu, int threads) {
  const auto recorder = simt::open_recorder({.info = gpu.info, .limits = gpu.limits});
  Result<Rnn> rnn = make_rnn(problem, choice, recorder);
  if (!rnn.ok()) return rnn.error();
  if (Status status = run_step(*rnn, *recorder); !status.ok()) return status.error();
  Inspection found{.plan = {problem, choice}};
  found.recording = recorder->recording();
  if (gpu.device != nullptr) {
    rnn = make_rnn(problem, choice, gpu.device);
    if (!rnn.ok()) return rnn.error();
    found.with_products = true;
  }
  found.plan.sizes = {rnn->packed_bytes(), rnn->workspace_bytes(), rnn->reserve_bytes()};
  Result<std::vector<cuda::Compiled>> compiled =
      cuda::compile_all(kernels_of(found.recording),
                        {.architectures = {gpu.info.architecture},
                         .threads = threads,
                         .data_folder = data_folder(),
                         .cache_folder = cache_folder()},
                        [](const cuda::Compiled&) {});
  if (compiled.ok()) {
    found.compiled = std::move(*compiled);
  } else {
    found.not_compiled = compiled.error().message;
  }
  return found;
}

}  // namespace rnntune::tuner
