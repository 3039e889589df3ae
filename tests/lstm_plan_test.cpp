// SPDX-License-Identifier: Apache-2.0
// What the plans of kernels/cuda/ do beside computing a step: graphs that follow their arguments,
// kernels that are refused before they run, tensors that a problem does not have.
#include "cuda/lstm_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "reference/compare.hpp"
#include "simt/device.hpp"
#include "tuner/contenders/contender.hpp"
#include "tuner/contenders/step_run.hpp"
#include "variants.hpp"

namespace rnntune {
namespace {

std::shared_ptr<Device> open() { return *simt::open_simt({.seed = 1}); }

Problem problem_of(std::string_view text) { return *parse_problem(text); }

std::unique_ptr<Plan> plan_of(const std::shared_ptr<Device>& device, const Problem& problem,
                              const Config& config) {
  auto plan = find_variant("simt", config.variant)->make(problem, device, config);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return std::move(*plan);
}

std::vector<Config> built_ins(const Problem& problem, const DeviceInfo& info) {
  std::vector<Config> configs;
  for (const char* name : {"pointwise", "unfused"}) {
    configs.push_back(find_variant("simt", name)->built_in(problem, info));
  }
  return configs;
}

TEST(LstmPlanTest, ResourcesAreRefusedByNameAndValue) {
  const gpu::Limits h100{.compute_capability = 90,
                         .multiprocessors = 132,
                         .max_threads_per_block = 1024,
                         .max_threads_per_multiprocessor = 2048,
                         .registers_per_multiprocessor = 65536,
                         .shared_bytes_per_block = 227 * 1024,
                         .shared_bytes_per_multiprocessor = 228 * 1024};
  const gpu::LaunchShape block{.block = {32, 16}};
  const auto why = [&](const gpu::KernelResources& uses) {
    return cuda::why_not_resources(uses, h100, block);
  };
  EXPECT_EQ(why({}), "");
  EXPECT_EQ(why({.registers = 124, .local_bytes = 8, .max_threads = 512}), "");
  EXPECT_EQ(why({.registers = 124, .max_threads = 448}),
            "threads of a block: needs 512, at most 448");
  EXPECT_EQ(why({.registers = 129}), "registers of a block: needs 69632, at most 65536");
  EXPECT_EQ(cuda::why_not_resources({.registers = 112}, h100, {.block = {32, 16}}), "");
  EXPECT_EQ(cuda::why_not_resources({.registers = 112}, h100, {.block = {32, 17}}),
            "registers of a block: needs 71680, at most 65536")
      << "18 warps would fit if the four parts of a multiprocessor shared their registers";
  EXPECT_THAT(why({.static_shared_bytes = 240000}), testing::HasSubstr("at most 232448"));
  EXPECT_THAT(why({.local_bytes = 400}), testing::HasSubstr("needs 400, at most 56"));
}

// Sums that are added in any order may agree twice, and are not repeatable for that.
TEST(LstmPlanTest, AtomicSumsAreNeverCalledRepeatable) {
  const std::shared_ptr<Device> device = *simt::open_simt({.seed = 0});
  const tuner::Setting setting{device, tuner::make_case(problem_of("lstm:T2,B3,I4,H8,f32"), 1)};
  Config config = built_ins(setting.problem(), device->info()).front();
  for (const bool atomic : {false, true}) {
    config.set("bias_gradient", atomic ? "atomic" : "column_sum");
    tuner::Record record;
    EXPECT_NE(tuner::make_valid_plan(setting, config, record), nullptr) << record.reason;
    EXPECT_EQ(record.repeatable, !atomic);
  }
}

// Forward calls that differ in one thing each: where y is, how many time steps there are, what is
// wanted. More of them than graphs are kept, and the first one again.
TEST(LstmPlanTest, GraphsFollowTheirArguments) {
  const std::shared_ptr<Device> opened = open();
  Device& device = *opened;
  const Problem problem = problem_of("lstm:L2,T4,B3,I3,H5,f32");
  Config config = find_variant("simt", "pointwise")->built_in(problem, device.info());
  config.set("launch", "graph");
  const std::unique_ptr<Plan> plan = plan_of(opened, problem, config);
  const auto which = tuner::make_case(problem, 1);
  const reference::Outputs<double>& expected = which->expected;
  auto run =
      tuner::StepRun::create(*plan, opened, problem, which->inputs, tuner::Placement::aligned);
  ASSERT_TRUE(run.ok() && (*run)->reset().ok() && (*run)->pack().ok());
  constexpr std::size_t kPlaces = 40, kSize = 4 * 3 * 5, kState = 3 * 5;
  auto* const memory = static_cast<float*>(*device.allocate(kPlaces * kSize * sizeof(float)));
  auto* const h_n = static_cast<float*>(*device.allocate(2 * kState * sizeof(float)));
  std::vector<float> y(kPlaces * kSize), last(2 * kState);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < kPlaces; ++i) {
      const bool wanted = i % 3 == 0;
      ASSERT_TRUE(device.fill(h_n, 0xff, 2 * kState * sizeof(float)).ok());
      ASSERT_TRUE(device.fill(memory, 0xff, kPlaces * kSize * sizeof(float)).ok());
      Forward forward = (*run)->forward_arguments();
      forward.y = memory + i / 4 * kSize;  // four calls with one place, of 4, 3, 2 and 1 time steps
      forward.h_n = wanted ? h_n : nullptr;
      const std::int64_t time = 4 - static_cast<std::int64_t>(i % 4);
      const Status status =
          plan->forward(Mode::inference, {time, 3}, forward, (*run)->plan_buffers(), nullptr);
      ASSERT_TRUE(status.ok()) << status.error().message;
      ASSERT_TRUE(device.to_host(y.data(), memory, y.size() * sizeof(float)).ok());
      ASSERT_TRUE(device.to_host(last.data(), h_n, last.size() * sizeof(float)).ok());
      const std::size_t begin = i / 4 * kSize, size = static_cast<std::size_t>(time) * kState;
      for (std::size_t at = 0; at < y.size(); ++at) {
        const bool written = at >= begin && at < begin + size;
        ASSERT_TRUE(written || std::isnan(y[at])) << "call " << i << " element " << at;
      }
      const auto check =
          reference::check_tensor("y", {y.data() + begin, size}, {expected.y.data(), size},
                                  reference::error_bound(problem, "y"));
      ASSERT_TRUE(check.ok) << "call " << i << ": " << check.reason;
      EXPECT_EQ(std::isnan(last.front()), !wanted) << "call " << i;
    }
  }
  device.release(memory);
  device.release(h_n);
}

// A caller may keep tensors that the problem does not have: they are neither read nor written.
TEST(LstmPlanTest, BiasesThatTheProblemLacksAreLeftAlone) {
  const std::shared_ptr<Device> device = open();
  const Problem two = problem_of("lstm:L2,T3,B4,I5,H8,f32");
  const reference::Inputs inputs = reference::make_inputs(two, 1);
  for (const char* text : {"lstm:L2,T3,B4,I5,H8,bias1,f32", "lstm:L2,T3,B4,I5,H8,nobias,f32"}) {
    const Problem problem = problem_of(text);
    reference::Inputs fewer = inputs;
    for (auto& layer : fewer.weights) {
      layer.bias_hh.clear();
      if (problem.bias == Bias::none) layer.bias_ih.clear();
    }
    const reference::Outputs<double> expected = reference::reference_step(problem, fewer);
    for (const Config& config : built_ins(problem, device->info())) {
      SCOPED_TRACE(std::string(text) + " " + to_string(config));
      const std::unique_ptr<Plan> plan = plan_of(device, problem, config);
      auto run = tuner::StepRun::create(*plan, device, two, inputs, tuner::Placement::aligned);
      ASSERT_TRUE(run.ok() && (*run)->reset().ok() && (*run)->step(true).ok());
      auto out = (*run)->outputs();
      ASSERT_TRUE(out.ok()) << out.error().message;
      for (auto& layer : out->gradients) {
        EXPECT_THAT(layer.bias_hh, testing::Each(0.0f));
        layer.bias_hh.clear();
        if (problem.bias == Bias::none) {
          EXPECT_THAT(layer.bias_ih, testing::Each(0.0f));
          layer.bias_ih.clear();
        }
      }
      for (const auto& check : reference::check_outputs(problem, *out, expected)) {
        EXPECT_TRUE(check.ok) << check.tensor << ": " << check.reason;
      }
    }
  }
}

}  // namespace
}  // namespace rnntune
