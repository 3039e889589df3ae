// SPDX-License-Identifier: Apache-2.0
// Configs whose kernels do not fit the device, on a fake driver: each is a record with its reason
// before anything is launched (R37), and leaves no memory behind (R39).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/lstm_plan.hpp"
#include "cuda/texts.hpp"
#include "cuda/usage.hpp"
#include "kernels/cuda/device.hpp"
#include "space.hpp"
#include "tests/fake_cuda.hpp"
#include "tests/pairwise.hpp"
#include "tuner/contenders/evaluate.hpp"

namespace rnntune {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using tuner::Outcome;

constexpr CUfunction_attribute kThreads = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;

class CudaResourcesTest : public testing::Test {
 protected:
  void SetUp() override { reset_fake_cuda(); }

  // A device all of whose kernels need this.
  static tuner::Setting setting(std::map<CUfunction_attribute, int> needs) {
    fake_cuda().of_functions = std::move(needs);
    auto device = cuda::open_cuda(fake_libraries(), {}, cuda::kernel_texts());
    EXPECT_TRUE(device.ok()) << device.error().message;
    return {*device, tuner::make_case(*parse_problem("lstm:L2,T3,B4,I5,H8,f32"), 1)};
  }

  static tuner::Record evaluate(const tuner::Setting& setting, const Config& config) {
    return tuner::evaluate(setting, {to_string(setting.problem()), config, "hash"}, {});
  }

  static std::vector<Config> configs(const tuner::Setting& setting) {
    const Space space(setting.problem(), setting.device->info());
    std::vector<Config> all;
    for (const Space::Branch& branch : space.branches()) {
      for (Config& config : PairwiseCover(space, branch, 1).configs()) all.push_back(config);
    }
    return all;
  }

  // Nothing has run, and nothing is left.
  static void expect_untouched() {
    EXPECT_THAT(fake_cuda().launches, IsEmpty());
    EXPECT_THAT(fake_cuda().gemms, IsEmpty());
    EXPECT_THAT(fake_cuda().matmuls, IsEmpty());
    EXPECT_THAT(fake_cuda().memory, IsEmpty());
  }
};

TEST_F(CudaResourcesTest, R37EveryConfigOfASpaceIsRefusedByItsReason) {
  const struct {
    std::map<CUfunction_attribute, int> needs;
    const char* reason;
  } rows[] = {
      {{{CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 300 << 10}, {kThreads, 1024}},
       "shared memory of a block: needs 307200, at most 232448"},
      {{{kThreads, 64}}, "threads of a block: needs "},
      {{{CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 400}, {kThreads, 1024}}, "needs 400, at most 56"},
  };
  for (const auto& row : rows) {
    const tuner::Setting all = setting(row.needs);
    const std::vector<Config> tried = configs(all);
    ASSERT_GT(tried.size(), 20u);
    for (const Config& config : tried) {
      const tuner::Record record = evaluate(all, config);
      EXPECT_EQ(record.outcome, Outcome::resource_limit) << to_string(config);
      EXPECT_THAT(record.reason, AllOf(HasSubstr("rnntune::cuda::"), HasSubstr(row.reason)));
      EXPECT_EQ(record.attempt.config, config);
    }
    expect_untouched();
  }
}

// Registers refuse the large blocks of a kernel, and leave the small ones.
TEST_F(CudaResourcesTest, R37RegistersRefuseWhatTheyMust) {
  const tuner::Setting some = setting({{CU_FUNC_ATTRIBUTE_NUM_REGS, 160}, {kThreads, 1024}});
  Config config = find_variant("cuda", "pointwise")->built_in(some.problem(), some.device->info());
  const auto plan = [&] {
    // Without the sums, whose blocks are as large as they come.
    const Problem problem = *parse_problem("lstm:L2,T3,B4,I5,H8,nobias,f32");
    return find_variant("cuda", "pointwise")->make(problem, some.device, config);
  };
  EXPECT_TRUE(plan().ok());
  config.set("threads", "512");
  const auto refused = plan();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::resource_limit);
  EXPECT_THAT(refused.error().message, HasSubstr("registers of a block: needs 81920, at most"));
  expect_untouched();
}

// What is out of the question for the plans is so by the toolkit's own rules, and nothing else.
TEST_F(CudaResourcesTest, RefusalsAreThoseOfTheToolkit) {
  for (const char* architecture : {"sm_80", "sm_86", "sm_90", "sm_120"}) {
    const gpu::Limits& limits = *cuda::limits_of(architecture);
    for (int warps = 1; warps <= 32; ++warps) {
      for (int registers = 8; registers <= 255; registers += 3) {
        for (const int shared : {0, 50 << 10, 99 << 10, 100 << 10, 163 << 10, 227 << 10}) {
          const gpu::LaunchShape shape{.block = {32, unsigned(warps)},
                                       .shared_bytes = unsigned(shared)};
          const bool refused =
              !cuda::why_not_resources({.registers = registers}, limits, shape).empty();
          const int blocks =
              cuda::residency({.registers = registers}, limits, 32 * warps, shared).blocks;
          ASSERT_EQ(refused, blocks == 0) << architecture << ": " << warps << " warps, "
                                          << registers << " registers, " << shared << " bytes";
        }
      }
    }
  }
}

TEST_F(CudaResourcesTest, R39FailedConfigsLeaveNoMemory) {
  fake_cuda().major = 8;  // whose products take an eighth of the workspace
  const tuner::Setting good = setting({{kThreads, 1024}});
  const Config config =
      find_variant("cuda", "pointwise")->built_in(good.problem(), good.device->info());
  // Its kernels stay loaded meanwhile, which saves their compilation.
  const auto kept = find_variant("cuda", "pointwise")->make(good.problem(), good.device, config);
  ASSERT_TRUE(kept.ok());
  const struct {
    const char* call;
    CUresult result;
    Outcome outcome;
    int times;
  } rows[] = {{"cuLaunchKernelEx", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, Outcome::launch_failed, 200},
              {"cuMemsetD8Async", CUDA_ERROR_INVALID_VALUE, Outcome::launch_failed, 10},
              {"cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY, Outcome::resource_limit, 10}};
  for (const auto& row : rows) {
    fake_cuda().failures = {{row.call, row.result}};
    for (int i = 0; i < row.times; ++i) {
      const tuner::Record record = evaluate(good, config);
      ASSERT_EQ(record.outcome, row.outcome) << record.reason;
      ASSERT_THAT(record.reason, HasSubstr(row.call));
      ASSERT_THAT(fake_cuda().memory, IsEmpty());
    }
  }
  const std::size_t handles = fake_cuda().alive.size();
  fake_cuda().failures = {{"cuLaunchKernelEx", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES}};
  evaluate(good, config);
  EXPECT_EQ(fake_cuda().alive.size(), handles) << "streams, events, modules";
}

}  // namespace
}  // namespace rnntune
