// SPDX-License-Identifier: Apache-2.0
// The public entry: checks arguments, keeps track of which reserve may be used for what, and runs
// the plan.
#include "rnntune/rnn.hpp"

#include <algorithm>
#include <array>
#include <bit>

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
  return s.plan->pack(layers, {bytes(packed), nullptr, nullptr}, stream);
}

Status Rnn::forward(Mode mode, const Forward& args, const Buffers& buffers, Stream stream) {
  State& s = *state_;
  const Result<Extent> extent = s.extent(args);
  if (!extent) return extent.error();
  const Status tensors = check_tensors({{"x", args.x, true},
                                        {"y", args.y, true},
                                        {"h_0", args.h_0, false},
                                        {"c_0", args.c_0, false},
                                        {"h_n", args.h_n, false},
                                        {"c_n", args.c_n, false}});
  if (!tensors) return tensors;
  const bool training = mode == Mode::training;
  if (Status status = s.check_buffers(buffers, training); !status) return status;
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
  const Status tensors = check_tensors({{"x", args.x, true},
                                        {"y", args.y, true},
                                        {"dy", args.dy, true},
                                        {"h_0", args.h_0, false},
                                        {"c_0", args.c_0, false},
                                        {"dh_n", args.dh_n, false},
                                        {"dc_n", args.dc_n, false},
                                        {"dx", args.dx, false},
                                        {"dh_0", args.dh_0, false},
                                        {"dc_0", args.dc_0, false}});
  if (!tensors) return tensors;
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
  const Status tensors =
      check_tensors({{"x", args.x, true}, {"y", args.y, true}, {"h_0", args.h_0, false}});
  if (!tensors) return tensors;
  if (Status status = check_layers(s.problem, "gradients", args.gradients); !status) return status;
  return s.plan->backward_weights(record->extent, args, plan_buffers(buffers), stream);
}

const char* version() { return RNNTUNE_VERSION; }

}  // namespace rnntune
