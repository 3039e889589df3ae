// SPDX-License-Identifier: Apache-2.0
// Reported faults of launches, memory and pointers on GPUs, each by the name of its R number. They
// run on the emulator, or on the GPU that RNNTUNE_DEVICE names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/arguments.hpp"
#include "reference/compare.hpp"
#include "rnntune/rnn.hpp"
#include "space.hpp"
#include "tests/gpu_under_test.hpp"
#include "tests/pairwise.hpp"
#include "tuner/contenders/step_run.hpp"

namespace rnntune {
namespace {

using reference::Inputs;
using testing::HasSubstr;

std::shared_ptr<Device> device() { return fixtures::gpu_under_test({.seed = 1}); }

Problem problem_of(const std::string& text) { return *parse_problem(text); }

const Variant& pointwise(const Device& device) {
  return *find_variant(device.info().backend, "pointwise");
}

Config thb(Config config) {
  for (const char* order : {"forward", "data", "weights"}) config.set(order, "thb");
  config.set("vector", "1");
  return config;
}

// One step on poisoned outputs, against the oracle.
reference::Outputs<float> step(const std::shared_ptr<Device>& on, const Problem& problem,
                               const Inputs& inputs, const Config& config) {
  SCOPED_TRACE(to_string(problem) + " '" + to_string(config) + "'");
  const auto plan = pointwise(*on).make(problem, on, config);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  if (!plan.ok()) return {};
  auto run = tuner::StepRun::create(**plan, on, problem, inputs, tuner::Placement::aligned);
  EXPECT_TRUE(run.ok()) << run.error().message;
  if (!run.ok()) return {};
  const Status status = (*run)->step(true);
  EXPECT_TRUE(status.ok()) << status.error().message;
  auto out = (*run)->outputs();
  EXPECT_TRUE(out.ok()) << out.error().message;
  if (!out.ok()) return {};
  const auto expected = reference::reference_step(problem, inputs);
  for (const auto& check : reference::check_outputs(problem, *out, expected)) {
    EXPECT_TRUE(check.ok) << check.tensor << ": " << check.reason;
  }
  const auto damage = (*run)->damage();
  EXPECT_TRUE(damage.ok() && damage->empty());
  return std::move(*out);
}

// pytorch/pytorch#133751: time steps counted in 16 bits.
TEST(GpuCases, R01SequencesBeyond16Bits) {
  const std::shared_ptr<Device> on = device();
  Problem problem = problem_of("lstm:L1,T65537,B1,I1,H4,f32");
  const Inputs whole = reference::make_inputs(problem, 1);
  std::map<std::int64_t, std::vector<float>> y;
  for (const std::int64_t time : {65535, 65536, 65537}) {
    problem.time = time;
    Inputs inputs = whole;
    inputs.x.resize(static_cast<std::size_t>(time));
    inputs.dy.resize(static_cast<std::size_t>(time) * 4);
    y[time] = step(on, problem, inputs, pointwise(*on).built_in(problem, on->info())).y;
  }
  ASSERT_EQ(y[65536].size(), 4u * 65536);
  y[65536].resize(y[65535].size());
  EXPECT_EQ(y[65536], y[65535]);
}

// ROCm/rocm-libraries#10551: rows of all time steps and samples as one dimension of the grid.
TEST(GpuCases, R02GridsBeyond16Bits) {
  const std::shared_ptr<Device> on = device();
  for (const char* text :
       {"lstm:L1,T1024,B64,I8,H8,f32", "lstm:L1,T1025,B64,I8,H8,f32", "lstm:L1,T1,B65536,I2,H3,f32",
        "lstm:L1,T1,B65537,I2,H3,f32", "lstm:L1,T5,B6464,I32,H32,f32"}) {
    const Problem problem = problem_of(text);
    const Inputs inputs = reference::make_inputs(problem, 1);
    const Config config = pointwise(*on).built_in(problem, on->info());
    step(on, problem, inputs, config);
    step(on, problem, inputs, thb(config));
  }
  // As many rows of blocks as a grid has, and one sample more: a block goes on with the next rows.
  const Problem wide = problem_of("lstm:L1,T1,B" + std::to_string(65535 * 4 + 1) + ",I1,H1,f32");
  step(on, wide, reference::make_inputs(wide, 1), pointwise(*on).built_in(wide, on->info()));
}

TEST(GpuCases, R02AnImpossibleLaunchIsAnErrorAndNoLoss) {
  const std::shared_ptr<Device> opened = device();
  gpu::GpuDevice& on = gpu::gpu(*opened);
  const gpu::KernelId id{"operations.cuh", "rnntune::cuda::apply<rnntune::cuda::Add>"};
  const auto kernels = on.build({&id, 1});
  ASSERT_TRUE(kernels.ok()) << kernels.error().message;
  std::vector<float> values(64, 1.0f);
  const auto memory = on.allocate(values.size() * sizeof(float));
  ASSERT_TRUE(memory.ok());
  ASSERT_TRUE(on.to_device(*memory, values.data(), values.size() * sizeof(float)).ok());
  cuda::OperationArguments a;
  a.a = a.b = a.y = static_cast<float*>(*memory);
  a.rows = 1;
  a.columns = 64;
  const auto launch = [&](const gpu::LaunchShape& shape) {
    return on.launch(*kernels->front(), shape, &a, sizeof a, nullptr);
  };
  for (const gpu::LaunchShape& shape :
       {gpu::LaunchShape{.grid = {1, 65536}, .block = {32}}, gpu::LaunchShape{.block = {32, 64}},
        gpu::LaunchShape{.grid = {0}, .block = {32}},
        gpu::LaunchShape{.block = {32}, .shared_bytes = 300 << 10}}) {
    const Status status = launch(shape);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(status.error().message, HasSubstr("apply<rnntune::cuda::Add>"));
  }
  ASSERT_TRUE(launch({.block = {32}}).ok());
  ASSERT_TRUE(on.to_host(values.data(), *memory, values.size() * sizeof(float)).ok());
  EXPECT_THAT(values, testing::Each(2.0f));
  on.release(*memory);
}

// pytorch/pytorch#18110: the same seed, other results. Bit by bit, unless the config says so.
TEST(GpuCases, R14TwentyRunsGiveTheSameBits) {
  const std::shared_ptr<Device> on = device();
  const Problem problem = problem_of("lstm:L3,T20,B8,I64,H64,f32");
  const Inputs inputs = reference::make_inputs(problem, 1);
  const Space space(problem, on->info());
  std::vector<Config> configs;
  for (const Space::Branch& branch : space.branches()) {
    for (Config& config : PairwiseCover(space, branch, 1).configs()) configs.push_back(config);
  }
  // A step takes tens of milliseconds on the emulator, microseconds on a GPU.
  const std::size_t stride = fixtures::emulated() ? 8 : 1;
  int compared = 0;
  for (std::size_t i = 0; i < configs.size(); i += stride) {
    const Variant& variant = *find_variant(on->info().backend, configs[i].variant);
    if (variant.repeatable != nullptr && !variant.repeatable(configs[i])) continue;
    const auto plan = variant.make(problem, on, configs[i]);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    auto run = tuner::StepRun::create(**plan, on, problem, inputs, tuner::Placement::aligned);
    ASSERT_TRUE(run.ok()) << run.error().message;
    reference::Outputs<float> first;
    for (int repetition = 0; repetition < 20; ++repetition) {
      ASSERT_TRUE((*run)->step(true).ok());
      auto out = (*run)->outputs();
      ASSERT_TRUE(out.ok()) << out.error().message;
      if (repetition == 0) first = *out;
      reference::each_output(first, *out, [&](const std::string& name, auto& a, auto& b) {
        EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0)
            << name << " of '" << to_string(configs[i]) << "' in repetition " << repetition;
      });
    }
    ++compared;
  }
  EXPECT_GE(compared, 3);
}

// A call of the library on memory of the device.
class Call {
 public:
  explicit Call(std::shared_ptr<Device> on) : on_(std::move(on)) {
    RnnOptions options;
    options.default_databases = false;
    auto rnn = Rnn::create(problem, on_, options);
    EXPECT_TRUE(rnn.ok()) << rnn.error().message;
    if (rnn.ok()) rnn_ = std::make_unique<Rnn>(std::move(*rnn));
    buffers = {memory(rnn_->packed_bytes()), memory(rnn_->workspace_bytes()),
               memory(rnn_->reserve_bytes())};
    for (const auto& layer : inputs.weights) {
      weights.push_back({floats(layer.weight_ih), floats(layer.weight_hh), floats(layer.bias_ih),
                         floats(layer.bias_hh), nullptr});
    }
    forward.x = floats(inputs.x);
    forward.h_0 = floats(inputs.h_0);
    forward.c_0 = floats(inputs.c_0);
    forward.y = floats(inputs.dy);
    data.x = weight_call.x = forward.x;
    data.y = weight_call.y = forward.y;
    data.h_0 = weight_call.h_0 = forward.h_0;
    data.c_0 = forward.c_0;
    data.dy = floats(inputs.dy);
    data.dh_n = floats(inputs.dh_n);
    data.dc_n = floats(inputs.dc_n);
    data.dx = floats(inputs.x);
    for (const auto& layer : inputs.weights) {
      const auto zeros = [&](std::size_t count) { return floats(std::vector<float>(count)); };
      gradients.push_back({zeros(layer.weight_ih.size()), zeros(layer.weight_hh.size()),
                           zeros(layer.bias_ih.size()), zeros(layer.bias_hh.size()), nullptr});
    }
    weight_call.gradients = gradients.data();
  }
  Call(const Call&) = delete;
  ~Call() {
    for (void* const one : memory_) on_->release(one);
  }

  float* floats(const std::vector<float>& values) {
    void* const data = memory(values.size() * sizeof(float)).data;
    EXPECT_TRUE(on_->to_device(data, values.data(), values.size() * sizeof(float)).ok());
    return static_cast<float*>(data);
  }
  Memory memory(std::size_t bytes) {
    const auto data = on_->allocate(bytes);
    EXPECT_TRUE(data.ok());
    memory_.push_back(*data);
    return {*data, bytes};
  }
  Status run() {
    if (Status status = rnn_->pack(weights.data(), buffers.packed); !status.ok()) return status;
    return rnn_->forward(Mode::training, forward, buffers);
  }
  Status run_data() { return rnn_->backward_data(data, buffers); }
  Status run_weights() { return rnn_->backward_weights(weight_call, buffers); }

  void expect_right(const std::string& tensor, const float* at,
                    const std::vector<double>& expected) const {
    std::vector<float> values(expected.size());
    ASSERT_TRUE(on_->to_host(values.data(), at, values.size() * sizeof(float)).ok());
    const auto check =
        reference::check_tensor(tensor, values, expected, reference::error_bound(problem, tensor));
    EXPECT_TRUE(check.ok) << tensor << ": " << check.reason << ", error " << check.error
                          << ", bound " << check.bound;
  }

  const Problem problem = problem_of("lstm:L2,T3,B4,I5,H8,f32");
  const Inputs inputs = reference::make_inputs(problem, 1);
  std::vector<LayerWeights> weights;
  std::vector<LayerGradients> gradients;
  Forward forward;
  BackwardData data;
  BackwardWeights weight_call;
  Buffers buffers;

 private:
  const std::shared_ptr<Device> on_;
  std::unique_ptr<Rnn> rnn_;
  std::vector<void*> memory_;
};

// One place of a call is foreign, then the right one again.
template <class Run, class Pointer>
void expect_refused(Run run, Pointer*& place, std::common_type_t<Pointer>* foreign,
                    const std::string& why) {
  Pointer* const right = std::exchange(place, foreign);
  const Status status = run();
  place = right;
  ASSERT_FALSE(status.ok()) << why;
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(status.error().message, testing::StartsWith(why));
}

// Aligned as any buffer must be, so that nothing else is wrong with it.
struct HostFloats {
  std::vector<float> values = std::vector<float>(100000);
  float* aligned() {
    const auto at = reinterpret_cast<std::uintptr_t>(values.data());
    return values.data() + (256 - at % 256) % 256 / sizeof(float);
  }
};

// pytorch/pytorch#9534: a host pointer took the context down. Every pointer of a call in turn.
TEST(GpuCases, R20HostMemoryIsRefusedAndTheNextCallIsRight) {
  Call call(device());
  const auto expected = reference::reference_step(call.problem, call.inputs);
  HostFloats host;
  const auto refused = [&](auto& place, const std::string& name) {
    expect_refused([&] { return call.run(); }, place, host.aligned(),
                   name + ": is not memory of the device");
  };
  const auto right = [&] {
    const Status status = call.run();
    ASSERT_TRUE(status.ok()) << status.error().message;
    call.expect_right("y", call.forward.y, expected.y);
  };
  refused(call.forward.h_0, "h_0");
  right();
  refused(call.forward.x, "x");
  refused(call.forward.c_0, "c_0");
  refused(call.forward.y, "y");
  refused(call.forward.h_n, "h_n");
  refused(call.forward.c_n, "c_n");
  refused(call.weights[0].weight_ih, "layers[0].weight_ih");
  refused(call.weights[1].weight_hh, "layers[1].weight_hh");
  refused(call.weights[0].bias_ih, "layers[0].bias_ih");
  refused(call.weights[1].bias_hh, "layers[1].bias_hh");
  refused(call.buffers.packed.data, "packed");
  refused(call.buffers.workspace.data, "workspace");
  refused(call.buffers.reserve.data, "reserve");
  right();
}

// The same for backward, whose reserve a refused call leaves as it was.
TEST(GpuCases, R20HostMemoryIsRefusedByBackwardToo) {
  Call call(device());
  const auto expected = reference::reference_step(call.problem, call.inputs);
  HostFloats host;
  const auto refused = [&](auto run, auto& place, const std::string& name) {
    expect_refused(run, place, host.aligned(), name + ": is not memory of the device");
  };
  ASSERT_TRUE(call.run().ok());
  const auto data = [&] { return call.run_data(); };
  refused(data, call.data.x, "x");
  refused(data, call.data.y, "y");
  refused(data, call.data.dy, "dy");
  refused(data, call.data.h_0, "h_0");
  refused(data, call.data.c_0, "c_0");
  refused(data, call.data.dh_n, "dh_n");
  refused(data, call.data.dc_n, "dc_n");
  refused(data, call.data.dx, "dx");
  refused(data, call.data.dh_0, "dh_0");
  refused(data, call.data.dc_0, "dc_0");
  refused(data, call.buffers.packed.data, "packed");
  refused(data, call.buffers.workspace.data, "workspace");
  const auto weights = [&] { return call.run_weights(); };
  const Status status = data();
  ASSERT_TRUE(status.ok()) << status.error().message;
  refused(weights, call.weight_call.x, "x");
  refused(weights, call.weight_call.y, "y");
  refused(weights, call.weight_call.h_0, "h_0");
  refused(weights, call.gradients[1].weight_ih, "gradients[1].weight_ih");
  refused(weights, call.gradients[0].weight_hh, "gradients[0].weight_hh");
  refused(weights, call.gradients[1].bias_ih, "gradients[1].bias_ih");
  refused(weights, call.gradients[0].bias_hh, "gradients[0].bias_hh");
  const Status last = weights();
  ASSERT_TRUE(last.ok()) << last.error().message;
  for (std::size_t layer = 0; layer < call.gradients.size(); ++layer) {
    const LayerGradients& out = call.gradients[layer];
    const auto& right = expected.gradients[layer];
    const std::string number = "[" + std::to_string(layer) + "]";
    call.expect_right("dW_hh" + number, out.weight_hh, right.weight_hh);
    call.expect_right("db_ih" + number, out.bias_ih, right.bias_ih);
  }
}

TEST(GpuCases, R20MemoryThatEndsTooEarlyIsRefused) {
  Call call(device());
  float* const three = call.floats({1, 2, 3});
  const auto run = [&] { return call.run(); };
  expect_refused(run, call.forward.y, three, "y: ends after ");
  expect_refused(run, call.forward.x, three, "x: ends after ");
  expect_refused(run, call.weights[1].weight_hh, three, "layers[1].weight_hh: ends after ");
  expect_refused(run, call.weights[0].bias_hh, three, "layers[0].bias_hh: ends after ");
  EXPECT_TRUE(run().ok());
}

}  // namespace
}  // namespace rnntune
