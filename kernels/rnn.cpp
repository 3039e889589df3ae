// SPDX-License-Identifier: Apache-2.0
// The public entry: checks arguments, keeps track of which reserve may be used for what, and runs
// the plan.
#include "rnntune/rnn.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "call_memory.hpp"
#include "choose.hpp"
#include "plan.hpp"
#include "space.hpp"

namespace rnntune {
namespace {

constexpr std::size_t kAlignment = 64;

// What is known of the reserves that forward wrote. A plan may have several forward calls
// outstanding, each with its own reserve; the oldest record is given up for a new one.
struct ReserveRecord {
  enum class Phase { none, forward_done, data_done };
  const void* reserve = nullptr;
  Phase phase = Phase::none;
  Extent extent;
};
constexpr std::size_t kOutstanding = 64;

Status missing(const char* name) {
  return invalid_argument(std::string(name) + " must not be null");
}

Status check_memory(const char* name, const Memory& memory, std::size_t needed) {
  if (needed == 0) return {};
  if (memory.data == nullptr) return missing(name);
  if (memory.bytes < needed)
    return invalid_argument(std::string(name) + " needs " + std::to_string(needed) +
                            " bytes, got " + std::to_string(memory.bytes));
  if (std::bit_cast<std::uintptr_t>(memory.data) % kAlignment)
    return invalid_argument(std::string(name) + " must be aligned to 64 bytes");
  return {};
}

// A tensor pointer: not null where required, aligned to its element.
struct Tensor {
  const char* name;
  const void* data;
  bool required;
  std::int64_t count = 1;  // elements that the device is asked for
};

Status check_tensors(std::initializer_list<Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor.data == nullptr && tensor.required) return missing(tensor.name);
    if (std::bit_cast<std::uintptr_t>(tensor.data) % sizeof(float))
      return invalid_argument(std::string(tensor.name) + " must be aligned to its element");
  }
  return {};
}

template <class Layer>
Status check_layers(const Problem& problem, const char* argument, const Layer* layers) {
  if (layers == nullptr) return missing(argument);
  for (std::int64_t i = 0; i < problem.layers * problem.directions; ++i) {
    const Layer& w = layers[i];
    const bool input = !(problem.skip && i < problem.directions);
    const Status status = check_tensors({{"weight_ih", w.weight_ih, input},
                                         {"weight_hh", w.weight_hh, true},
                                         {"bias_ih", w.bias_ih, problem.bias != Bias::none},
                                         {"bias_hh", w.bias_hh, problem.bias == Bias::two},
                                         {"weight_hr", w.weight_hr, problem.projection > 0}});
    if (!status)
      return invalid_argument(std::string(argument) + "[" + std::to_string(i) + "]." +
                              status.error().message);
  }
  return {};
}

// The calls, which differ in what they pass.
enum Kind { kPack, kForward, kBackwardData, kBackwardWeights, kKinds };

// The most arrays of a call: buffers and tensors, and those of a layer.
constexpr std::int64_t kArrays = 13, kArraysOfLayer = 5;

std::size_t element_bytes(Dtype dtype) {
  return dtype == Dtype::f16 || dtype == Dtype::bf16 ? 2 : 4;
}

std::byte* bytes(const Memory& memory) { return static_cast<std::byte*>(memory.data); }

PlanBuffers plan_buffers(const Buffers& b) {
  return {bytes(b.packed), bytes(b.workspace), bytes(b.reserve)};
}

}  // namespace

const char* to_string(Rung rung) {
  constexpr std::array<const char*, 6> names{"given",   "exact",        "stale",
                                             "nearest", "architecture", "default"};
  return names[static_cast<std::size_t>(rung)];
}

std::string Explanation::text() const {
  std::string line = std::string(to_string(rung)) + ": " + to_string(config);
  if (!problem.empty()) line += ", tuned for " + problem;
  if (rung == Rung::nearest || distance > 0) {
    line += ", distance " + std::to_string(distance);
  }
  for (const std::string& note : notes) line += "; " + note;
  return line;
}

struct Rnn::State {
  Problem problem;
  std::shared_ptr<Device> device;
  Explanation explanation;
  std::unique_ptr<Plan> plan;
  PlanSizes sizes;
  std::array<ReserveRecord, kOutstanding> records;
  std::size_t next_record = 0;
  std::array<CallMemory, kKinds> memory;

  ReserveRecord* find(const void* reserve) {
    const auto at = std::find_if(records.begin(), records.end(), [&](const ReserveRecord& r) {
      return r.phase != ReserveRecord::Phase::none && r.reserve == reserve;
    });
    return at == records.end() ? nullptr : &*at;
  }

  void remember(const void* reserve, Extent extent) {
    ReserveRecord* record = find(reserve);
    if (record == nullptr) {
      record = &records[next_record];
      next_record = (next_record + 1) % kOutstanding;
    }
    *record = {reserve, ReserveRecord::Phase::forward_done, extent};
  }

  Result<Extent> extent(const Forward& args) const {
    const Extent e{args.time ? args.time : problem.time, args.batch ? args.batch : problem.batch};
    if (e.time < 1 || e.time > problem.time)
      return invalid_argument("time must be 1 to T = " + std::to_string(problem.time) + ", got " +
                              std::to_string(e.time));
    if (e.batch < 1 || e.batch > problem.batch)
      return invalid_argument("batch must be 1 to B = " + std::to_string(problem.batch) + ", got " +
                              std::to_string(e.batch));
    return e;
  }

  // Elements of the tensors of a call.
  TensorCounts counts(Extent e) const {
    const TensorCounts all = tensor_counts(problem);
    const std::int64_t rows = problem.time * problem.batch;
    return {all.x / rows * e.time * e.batch, all.y / rows * e.time * e.batch,
            all.h / problem.batch * e.batch, all.c / problem.batch * e.batch};
  }

  Status check_device_memory(Kind kind, std::initializer_list<Tensor> tensors) {
    for (const Tensor& tensor : tensors) {
      const auto count = static_cast<std::size_t>(tensor.count) * element_bytes(problem.dtype);
      const std::string why = memory[kind].why_not(*device, tensor.data, count);
      if (!why.empty()) return invalid_argument(std::string(tensor.name) + ": " + why);
    }
    return {};
  }
  Status check_device_memory(Kind kind, const Buffers& buffers, bool reserve) {
    const struct {
      const char* name;
      const void* data;
      std::size_t bytes;
    } rows[] = {{"packed", buffers.packed.data, sizes.packed},
                {"workspace", buffers.workspace.data, sizes.workspace},
                {"reserve", buffers.reserve.data, reserve ? sizes.reserve : 0}};
    for (const auto& row : rows) {
      const std::string why = memory[kind].why_not(*device, row.data, row.bytes);
      if (!why.empty()) return invalid_argument(std::string(row.name) + ": " + why);
    }
    return {};
  }
  template <class Layer>
  Status check_device_memory(Kind kind, const char* argument, const Layer* layers) {
    const std::int64_t rows = problem.gates() * problem.hidden, out = problem.output();
    // Of matrices that are factorised the first element is asked for.
    const bool whole = problem.groups.empty() && problem.rank == 0 && problem.heads == 1;
    for (std::int64_t i = 0; i < problem.layers * problem.directions; ++i) {
      const Layer& w = layers[i];
      const std::int64_t width = problem.layer_input(i / problem.directions);
      const Status status =
          check_device_memory(kind, {{"weight_ih", w.weight_ih, false, whole ? rows * width : 1},
                                     {"weight_hh", w.weight_hh, false, whole ? rows * out : 1},
                                     {"bias_ih", w.bias_ih, false, rows},
                                     {"bias_hh", w.bias_hh, false, rows},
                                     {"weight_hr", w.weight_hr, false, out * problem.hidden}});
      if (!status)
        return invalid_argument(std::string(argument) + "[" + std::to_string(i) + "]." +
                                status.error().message);
    }
    return {};
  }

  Status check_buffers(const Buffers& buffers, bool reserve) const {
    if (Status s = check_memory("packed", buffers.packed, sizes.packed); !s) return s;
    if (Status s = check_memory("workspace", buffers.workspace, sizes.workspace); !s) return s;
    return check_memory("reserve", buffers.reserve, reserve ? sizes.reserve : 0);
  }
};

Rnn::Rnn(std::unique_ptr<State> state) : state_(std::move(state)) {}
Rnn::Rnn(Rnn&&) noexcept = default;
Rnn& Rnn::operator=(Rnn&&) noexcept = default;
Rnn::~Rnn() = default;

Result<Rnn> Rnn::create(const Problem& problem, std::shared_ptr<Device> device,
                        const RnnOptions& options) {
  if (Status status = check(problem); !status) return status.error();
  if (device == nullptr) return invalid_argument("device must not be null");
  Result<Explanation> choice = choose_config(problem, device->info(), options);
  if (!choice) return choice.error();
  const Variant* variant = find_variant(device->info().backend, choice->config.variant);
  Result<std::unique_ptr<Plan>> plan = variant->make(problem, device, choice->config);
  if (!plan) return plan.error();
  auto state = std::make_unique<State>();
  state->problem = problem;
  state->device = std::move(device);
  state->explanation = std::move(*choice);
  state->plan = std::move(*plan);
  state->sizes = state->plan->sizes();
  const std::int64_t layers = problem.layers * problem.directions;
  for (CallMemory& memory : state->memory) {
    memory.resize(static_cast<std::size_t>(kArrays + kArraysOfLayer * layers));
  }
  return Rnn(std::move(state));
}

const Problem& Rnn::problem() const { return state_->problem; }
const Config& Rnn::config() const { return state_->explanation.config; }
const Explanation& Rnn::explain() const { return state_->explanation; }
std::size_t Rnn::packed_bytes() const { return state_->sizes.packed; }
std::size_t Rnn::workspace_bytes() const { return state_->sizes.workspace; }
std::size_t Rnn::reserve_bytes() const { return state_->sizes.reserve; }

Status Rnn::pack(const LayerWeights* layers, Memory packed, Stream stream) {
  State& s = *state_;
  if (Status status = check_layers(s.problem, "layers", layers); !status) return status;
  if (Status status = check_memory("packed", packed, s.sizes.packed); !status) return status;
  s.memory[kPack].begin();
  if (Status status = s.check_device_memory(kPack, {packed, {}, {}}, false); !status) return status;
  if (Status status = s.check_device_memory(kPack, "layers", layers); !status) return status;
  return s.plan->pack(layers, {bytes(packed), nullptr, nullptr}, stream);
}

Status Rnn::forward(Mode mode, const Forward& args, const Buffers& buffers, Stream stream) {
  State& s = *state_;
  const Result<Extent> extent = s.extent(args);
  if (!extent) return extent.error();
  const TensorCounts n = s.counts(*extent);
  const std::initializer_list<Tensor> tensors = {
      {"x", args.x, true, n.x},      {"y", args.y, true, n.y},      {"h_0", args.h_0, false, n.h},
      {"c_0", args.c_0, false, n.c}, {"h_n", args.h_n, false, n.h}, {"c_n", args.c_n, false, n.c}};
  if (Status status = check_tensors(tensors); !status) return status;
  const bool training = mode == Mode::training;
  if (Status status = s.check_buffers(buffers, training); !status) return status;
  s.memory[kForward].begin();
  if (Status status = s.check_device_memory(kForward, tensors); !status) return status;
  if (Status status = s.check_device_memory(kForward, buffers, training); !status) return status;
  PlanBuffers plan = plan_buffers(buffers);
  if (!training) plan.reserve = nullptr;
  const Status status = s.plan->forward(mode, *extent, args, plan, stream);
  if (status && training) s.remember(buffers.reserve.data, *extent);
  return status;
}

Status Rnn::backward_data(const BackwardData& args, const Buffers& buffers, Stream stream) {
  State& s = *state_;
  if (Status status = s.check_buffers(buffers, true); !status) return status;
  ReserveRecord* record = s.find(buffers.reserve.data);
  if (record == nullptr || record->phase != ReserveRecord::Phase::forward_done)
    return invalid_argument(
        "backward_data needs the reserve written by a training forward of the same shape, once");
  const TensorCounts n = s.counts(record->extent);
  const std::initializer_list<Tensor> tensors = {
      {"x", args.x, true, n.x},        {"y", args.y, true, n.y},
      {"dy", args.dy, true, n.y},      {"h_0", args.h_0, false, n.h},
      {"c_0", args.c_0, false, n.c},   {"dh_n", args.dh_n, false, n.h},
      {"dc_n", args.dc_n, false, n.c}, {"dx", args.dx, false, n.x},
      {"dh_0", args.dh_0, false, n.h}, {"dc_0", args.dc_0, false, n.c}};
  if (Status status = check_tensors(tensors); !status) return status;
  s.memory[kBackwardData].begin();
  if (Status status = s.check_device_memory(kBackwardData, tensors); !status) return status;
  if (Status status = s.check_device_memory(kBackwardData, buffers, true); !status) return status;
  record->phase = ReserveRecord::Phase::none;  // consumed, whatever comes
  const Extent extent = record->extent;
  const Status status = s.plan->backward_data(extent, args, plan_buffers(buffers), stream);
  if (status) record->phase = ReserveRecord::Phase::data_done;
  return status;
}

Status Rnn::backward_weights(const BackwardWeights& args, const Buffers& buffers, Stream stream) {
  State& s = *state_;
  if (Status status = s.check_buffers(buffers, true); !status) return status;
  const ReserveRecord* record = s.find(buffers.reserve.data);
  if (record == nullptr || record->phase != ReserveRecord::Phase::data_done)
    return invalid_argument(
        "backward_weights needs the reserve and workspace that backward_data left");
  const TensorCounts n = s.counts(record->extent);
  const std::initializer_list<Tensor> tensors = {
      {"x", args.x, true, n.x}, {"y", args.y, true, n.y}, {"h_0", args.h_0, false, n.h}};
  if (Status status = check_tensors(tensors); !status) return status;
  if (Status status = check_layers(s.problem, "gradients", args.gradients); !status) return status;
  constexpr Kind kKind = kBackwardWeights;
  s.memory[kKind].begin();
  if (Status status = s.check_device_memory(kKind, tensors); !status) return status;
  if (Status status = s.check_device_memory(kKind, buffers, true); !status) return status;
  if (Status status = s.check_device_memory(kKind, "gradients", args.gradients); !status) {
    return status;
  }
  return s.plan->backward_weights(record->extent, args, plan_buffers(buffers), stream);
}

const char* version() { return RNNTUNE_VERSION; }

}  // namespace rnntune
