// SPDX-License-Identifier: Apache-2.0
// What validation asks of a right plan, and its guarded memory.
#include "tuner/contenders/validate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "space.hpp"
#include "tuner/contenders/contender.hpp"
#include "tuner/contenders/evaluate.hpp"
#include "tuner/contenders/guarded.hpp"
#include "tuner/measure/limits.hpp"

namespace rnntune::tuner {
namespace {

using testing::HasSubstr;

std::shared_ptr<Device> device() { return *open_device("cpu", {.threads = 2, .isa = {}}); }

Config built_in(const Setting& setting) {
  return *Space(setting.problem(), setting.device->info()).built_in();
}

TEST(Validate, TheBuiltInConfigPassesWithItsErrorBelowTheBound) {
  for (const char* text : {"lstm:T1,B1,I1,H1", "lstm:L2,T4,B3,I5,H17", "lstm:T3,B2,I4,H8,nobias",
                           "lstm:T3,B2,I4,H8,bias1"}) {
    const Setting setting{device(), make_case(*parse_problem(text), 3)};
    Record record;
    EXPECT_TRUE(make_valid_plan(setting, built_in(setting), record)) << text << record.reason;
    ASSERT_TRUE(record.validation) << text;
    EXPECT_LE(record.validation->error, record.validation->bound) << text;
    EXPECT_GT(record.validate_us, 0);
  }
}

TEST(Validate, FewerTimeStepsAndSamplesThanThePlanWasMadeFor) {
  const Setting full{device(), make_case(*parse_problem("lstm:L2,T5,B4,I3,H9"), 1)};
  Record record;
  const auto plan = make_valid_plan(full, built_in(full), record);
  ASSERT_TRUE(plan) << record.reason;
  for (const char* text : {"lstm:L2,T5,B1,I3,H9", "lstm:L2,T1,B4,I3,H9", "lstm:L2,T2,B3,I3,H9"}) {
    const auto part = make_case(*parse_problem(text), 1);
    const Verdict verdict = validate(*plan, full.device, *part);
    EXPECT_TRUE(verdict.ok()) << text << ": " << verdict.reason;
  }
}

TEST(Validate, WithoutOptionalArguments) {
  const Setting full{device(), make_case(*parse_problem("lstm:L2,T3,B2,I3,H9"), 1)};
  const auto bare = make_bare_case(full.problem(), 1);
  EXPECT_TRUE(bare->inputs.h_0.empty());
  EXPECT_TRUE(bare->expected.dx.empty());
  Record record;
  const auto plan = make_valid_plan(full, built_in(full), record);
  ASSERT_TRUE(plan) << record.reason;
  const Verdict verdict = validate(*plan, full.device, *bare);
  EXPECT_TRUE(verdict.ok()) << verdict.reason;
}

TEST(Validate, AConfigOutsideTheSpaceIsRejectedWithTheReason) {
  const Setting setting{device(), make_case(*parse_problem("lstm:T2,B2,I3,H4"), 1)};
  Record record;
  EXPECT_FALSE(prepare(setting, {"warp", {}}, record));
  EXPECT_EQ(record.outcome, Outcome::rejected);
  EXPECT_THAT(record.reason, HasSubstr("warp"));
}

TEST(Validate, CasesAreSeededAndCached) {
  const Problem problem = *parse_problem("lstm:T2,B2,I3,H4");
  CaseCache cache;
  const auto first = cache.get(problem, 1);
  EXPECT_EQ(cache.get(problem, 1), first);
  EXPECT_EQ(cache.get(problem, 2)->seed, 2u);
  EXPECT_NE(first->inputs.x, make_case(problem, 2)->inputs.x);
  EXPECT_EQ(first->inputs.x, make_case(problem, 1)->inputs.x);
  ASSERT_EQ(first->gradient_starts.size(), 4u);
  for (const auto& [name, start] : first->gradient_starts) EXPECT_GT(start, 0) << name;
}

// The roofline may have been measured while other work had the cores: a config that beats it and
// does its work is kept.
TEST(Evaluate, ATimeBelowTheRooflineIsCheckedAndKept) {
  const Setting setting{device(), make_case(*parse_problem("lstm:T2,B2,I3,H4"), 1)};
  EvaluatePolicy policy;
  policy.measure.budget_us = 20e3;
  policy.roofline_us = 1e9;
  const Record record = evaluate(setting, {"p", built_in(setting), "h"}, policy);
  EXPECT_EQ(record.outcome, Outcome::ok) << record.reason;
  EXPECT_TRUE(record.time_us);
}

TEST(Evaluate, ATimeThatNoCpuCanReachIsUntrusted) {
  const Setting setting{device(), make_case(*parse_problem("lstm:T2,B2,I3,H4"), 1)};
  EvaluatePolicy policy;
  policy.measure.budget_us = 20e3;
  policy.roofline_us = policy.impossible_us = 1e9;
  const Record record = evaluate(setting, {"p", built_in(setting), "h"}, policy);
  EXPECT_EQ(record.outcome, Outcome::untrusted);
  EXPECT_THAT(record.reason, HasSubstr("below what any such CPU can do"));
  EXPECT_TRUE(record.time_us);
}

// The second look: outputs that the step leaves as they are do not pass.
TEST(Evaluate, ARecheckFindsWorkThatIsNotDone) {
  const auto which = std::make_shared<Case>(*make_case(*parse_problem("lstm:T2,B2,I3,H4"), 1));
  const Setting setting{device(), which};
  Record record;
  const auto contender = prepare(setting, built_in(setting), record);
  ASSERT_TRUE(contender);
  EXPECT_TRUE(contender->recheck().ok());
  which->expected.dx.front() += 1;
  const Status status = contender->recheck();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("dx"));
}

TEST(Evaluate, TheImpossibleTimeGoesByInstructionSetAndThreads) {
  const Problem problem = *parse_problem("lstm:T10,B20,I64,H64");
  DeviceInfo info;
  info.backend = "cpu";
  info.threads = 2;
  info.isa = {"avx2", "sse4"};
  EXPECT_DOUBLE_EQ(impossible_us(problem, info), step_flops(problem) / (32 * 7e3 * 2));
  info.isa = {"avx512", "avx2"};
  EXPECT_DOUBLE_EQ(impossible_us(problem, info), step_flops(problem) / (64 * 7e3 * 2));
  info.isa = {"something_new"};
  EXPECT_DOUBLE_EQ(impossible_us(problem, info), step_flops(problem) / (64 * 7e3 * 2));
  info.backend = "cuda";
  EXPECT_EQ(impossible_us(problem, info), 0);
}

TEST(Evaluate, TheTimeoutEndsAnEvaluation) {
  const Setting setting{device(), make_case(*parse_problem("lstm:T2,B2,I3,H4"), 1)};
  EvaluatePolicy policy;
  policy.timeout_us = 0;
  const Record record = evaluate(setting, {"p", built_in(setting), "h"}, policy);
  EXPECT_EQ(record.outcome, Outcome::timed_out);
  EXPECT_FALSE(record.time_us);
}

TEST(Evaluate, TheRooflineIsFlopsAtThePeakOfTheThreads) {
  MachineLimits limits;
  limits.limits = {{1, 100, {}}, {4, 320, {}}};
  EXPECT_DOUBLE_EQ(limits.peak_gflops(4), 400);  // four times the best rate of one thread
  const Problem problem = *parse_problem("lstm:T10,B20,I64,H64");
  EXPECT_DOUBLE_EQ(roofline_us(problem, limits, 4), step_flops(problem) / (1.05 * 400e3));
  EXPECT_EQ(roofline_us(problem, {}, 4), 0);
}

TEST(Limits, ARateThatWasSeenRaisesThem) {
  MachineLimits limits;
  limits.limits = {{1, 100, {}}, {4, 320, {}}};
  limits.raise(2, 150);  // 75 a thread: nothing new
  EXPECT_DOUBLE_EQ(limits.limits[0].fma_peak_f32_gflops, 100);
  EXPECT_DOUBLE_EQ(limits.limits[1].fma_peak_f32_gflops, 320);
  limits.raise(2, 240);
  EXPECT_DOUBLE_EQ(limits.limits[0].fma_peak_f32_gflops, 120);
  EXPECT_DOUBLE_EQ(limits.limits[1].fma_peak_f32_gflops, 480);
  limits.busy = true;
  limits.device = "no such device";
  EXPECT_FALSE(save_limits(limits).ok()) << "of a busy machine";
}

TEST(Evaluate, TheReproCommandNamesConfigSeedAndThreads) {
  const Setting setting{device(), make_case(*parse_problem("lstm:T2,B2,I3,H4"), 9)};
  const std::string command = repro_command(setting, built_in(setting));
  EXPECT_THAT(command, HasSubstr("rnntune verify --problem lstm:L1,T2,B2,I3,H4,f32 --config '"));
  EXPECT_THAT(command, HasSubstr(to_string(built_in(setting))));
  EXPECT_THAT(command, HasSubstr("--seed 9 --threads 2"));
}

TEST(Guarded, SeesEveryByteOutside) {
  for (const std::size_t shift : {0u, 4u}) {
    auto memory = Guarded::allocate(device(), 12, shift);
    ASSERT_TRUE(memory.ok());
    ASSERT_TRUE(memory->guard().ok());
    EXPECT_EQ(*memory->breach(), "");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 64, shift);
    for (const std::ptrdiff_t at : {-1024, -1, 12, 1035}) {
      ASSERT_TRUE(memory->guard().ok());
      memory->data()[at] = std::byte{0};
      EXPECT_NE(*memory->breach(), "") << at;
    }
  }
}

}  // namespace
}  // namespace rnntune::tuner
