// SPDX-License-Identifier: Apache-2.0
// One config of a space is faulty, on the emulator: the others must not notice. On a GPU such a
// fault takes the context down, and only another process helps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/arguments.hpp"
#include "simt/device.hpp"
#include "simt/launch.hpp"
#include "tuner/contenders/evaluate.hpp"
#include "variants.hpp"

namespace rnntune {
namespace {

using testing::HasSubstr;
using tuner::Outcome;

// What the kernel of the faulty config does in place of its work.
using Call = void (*)(void (*)(), const void*);
void meets_a_grid_that_is_not_there(void (*)(), const void*) {
  simt::grid_barrier({"grid_barrier", "faulty.cuh", 1});
}
void writes_beyond_h(void (*)(), const void* arguments) {
  static_cast<const cuda::PointwiseForwardArguments*>(arguments)->h[-1] = 1;
}
void waits_for_ever(void (*)(), const void*) {
  if (simt::lane() == 0) simt::block_barrier({"__syncthreads", "faulty.cuh", 1});
  if (simt::lane() != 0) simt::warp_meet(simt::WarpOperation::sync, ~0u, 0, 0, {});
}
void does_nothing(void (*)(), const void*) {}

constexpr struct {
  const char* name;
  Call call;
  Outcome outcome;
  const char* reason;
} kFaults[] = {
    {"grid barrier", meets_a_grid_that_is_not_there, Outcome::launch_failed, "not cooperative"},
    {"write outside", writes_beyond_h, Outcome::wrong_result, ""},
    {"deadlock", waits_for_ever, Outcome::launch_failed, "deadlock"},
    {"no work", does_nothing, Outcome::wrong_result, ""},
};

// The faulty kernel is that of vectors of four.
std::shared_ptr<gpu::GpuDevice> device(Call fault, std::int64_t memory_bytes) {
  std::vector<simt::KernelEntry> kernels(simt::plain_kernels().begin(),
                                         simt::plain_kernels().end());
  for (simt::KernelEntry& kernel : kernels) {
    if (std::string(kernel.expression).find("pointwise_forward<4") != std::string::npos) {
      kernel.call = fault;
    }
  }
  return simt::open_simt(simt::OpenOptions{.seed = 1, .memory_bytes = memory_bytes}, kernels);
}

tuner::Record evaluate(const tuner::Setting& setting, const Config& config) {
  tuner::EvaluatePolicy policy;
  policy.measure = {.min_samples = 2, .max_samples = 2, .budget_us = 1, .warmup_us = 1};
  return tuner::evaluate(setting, {to_string(setting.problem()), config, "hash"}, policy);
}

// Ten configs, of which the one at `faulty` takes vectors of four.
std::vector<Config> ten_configs(const tuner::Setting& setting, std::size_t faulty) {
  const Config built_in =
      find_variant("simt", "pointwise")->built_in(setting.problem(), setting.device->info());
  std::vector<Config> configs(10, built_in);
  for (std::size_t i = 0; i < configs.size(); ++i) {
    configs[i].set("vector", i == faulty ? "4" : "1");
    configs[i].set("threads", i % 2 == 0 ? "128" : "256");
    configs[i].set("chunk", std::to_string(i / 2 % 2));
    configs[i].set("weights", i < 5 ? "tbh" : "thb");
  }
  return configs;
}

TEST(FaultyConfigTest, R35TheOthersAreMeasured) {
  for (const auto& fault : kFaults) {
    SCOPED_TRACE(fault.name);
    for (const std::size_t faulty : {0, 4, 9}) {
      const tuner::Setting setting{device(fault.call, std::int64_t{1} << 30),
                                   tuner::make_case(*parse_problem("lstm:T2,B3,I4,H8,f32"), 1)};
      const std::vector<Config> configs = ten_configs(setting, faulty);
      for (std::size_t i = 0; i < configs.size(); ++i) {
        const tuner::Record record = evaluate(setting, configs[i]);
        EXPECT_EQ(record.outcome, i == faulty ? fault.outcome : Outcome::ok) << record.reason;
        EXPECT_EQ(record.attempt.config, configs[i]);
        EXPECT_EQ(record.time_us.has_value(), i != faulty);
        EXPECT_THAT(record.reason, HasSubstr(i == faulty ? fault.reason : ""));
      }
    }
  }
}

TEST(FaultyConfigTest, R39ItsMemoryComesBack) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  const tuner::Setting setting{device(meets_a_grid_that_is_not_there, kBytes),
                               tuner::make_case(*parse_problem("lstm:T2,B3,I4,H8,f32"), 1)};
  const std::vector<Config> configs = ten_configs(setting, 0);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(evaluate(setting, configs[0]).outcome, Outcome::launch_failed);
  }
  const auto all = setting.device->allocate(kBytes);
  ASSERT_TRUE(all.ok()) << all.error().message;
  setting.device->release(*all);
  EXPECT_EQ(evaluate(setting, configs[1]).outcome, Outcome::ok);
}

}  // namespace
}  // namespace rnntune
