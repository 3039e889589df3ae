// SPDX-License-Identifier: Apache-2.0
#include "tuner/measure/roofline.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rnntune::tuner {
namespace {

// A two-core server as measured: FMA peak in f32, read bandwidth by working set per thread.
const std::vector<ThreadLimits> kServer = {
    {1, 206, {{384 << 10, 159}, {4 << 20, 86}, {16 << 20, 74}, {128 << 20, 35}}},
    {2, 430, {{384 << 10, 318}, {4 << 20, 172}, {16 << 20, 148}, {128 << 20, 35}}}};

Problem problem_of(const std::string& text) { return *parse_problem(text); }

TEST(Roofline, ComputeRulesWhereWeightsAreReused) {
  const Problem problem = problem_of("lstm:L1,T50,B64,I512,H512,f32");
  const StepBound bound = step_bound(problem, kServer[0]);
  EXPECT_DOUBLE_EQ(bound.time_us, step_flops(problem) / 206e3);
  EXPECT_FALSE(bound.bandwidth_limited);
  EXPECT_GT(bound.intensity(), 50);
}

// One sample: 4 MiB of recurrent weights are read twice for each time step, the first 768 KiB of
// them from the inner level.
TEST(Roofline, BandwidthRulesASingleSequence) {
  const Problem problem = problem_of("lstm:L1,T100,B1,I512,H512,f32");
  const StepBound bound = step_bound(problem, kServer[0]);
  const double recurrent_us = 2 * 100 * ((768 << 10) / 159e3 + ((4 << 20) - (768 << 10)) / 86e3);
  EXPECT_GT(bound.time_us, recurrent_us);
  EXPECT_LT(bound.time_us, 1.3 * recurrent_us);
  EXPECT_TRUE(bound.bandwidth_limited);
  EXPECT_LT(bound.intensity(), 2);
}

TEST(Roofline, NoBandwidthsMeanComputeAlone) {
  const Problem problem = problem_of("lstm:L1,T100,B1,I512,H512,f32");
  EXPECT_DOUBLE_EQ(step_bound(problem, {1, 100, {}}).time_us, step_flops(problem) / 100e3);
}

TEST(Roofline, GroupsRankAndProjectionMoveFewerWeights) {
  const auto bytes = [](const char* text) {
    return step_bound(problem_of(text), kServer[0]).bytes;
  };
  const double full = bytes("lstm:L1,T20,B1,I256,H1024,P256,f32");
  EXPECT_LT(bytes("lstm:L1,T20,B1,I256,H1024,P256,G4,f32"), full);
  EXPECT_LT(bytes("lstm:L1,T20,B1,I256,H1024,P256,R64,f32"), full);
  EXPECT_LT(full, bytes("lstm:L1,T20,B1,I256,H1024,f32"));
}

TEST(Roofline, LimitsOfTheNextHigherThreadCount) {
  EXPECT_EQ(limits_at(kServer, 1)->threads, 1);
  EXPECT_EQ(limits_at(kServer, 2)->threads, 2);
  EXPECT_EQ(limits_at(kServer, 3), nullptr);
  EXPECT_EQ(limits_at({}, 1), nullptr);
  const std::vector<ThreadLimits> four{{4, 800, {}}};
  EXPECT_EQ(limits_at(four, 3)->threads, 4);
}

// Bounds worked out by hand for the same server, which add the time of the activation functions:
// up to an eighth for the smallest shapes.
TEST(Roofline, AgreesWithBoundsWorkedOutByHand) {
  struct Row {
    const char* problem;
    double one_thread_ms, two_threads_ms;
  };
  const std::vector<Row> rows = {
      {"lstm:L2,T20,B20,I200,H200", 7.66, 3.67},       {"lstm:L2,T35,B20,I650,H650", 139, 66.6},
      {"lstm:L2,T35,B20,I1500,H1500", 736, 353},       {"lstm:L1,T50,B64,I512,H512", 197, 94.7},
      {"lstm:L2,T50,B32,I1024,H1024", 785, 377},       {"lstm:L1,T25,B16,I512,H512", 24.7, 11.8},
      {"lstm:L1,T25,B128,I512,H512", 197, 94.7},       {"gru:L1,T50,B32,I256,H256", 18.7, 8.96},
      {"lstm:L1,T100,B1,I128,H128", 0.44, 0.22},       {"lstm:L1,T16,B8,I64,H64", 0.133, 0.064},
      {"lstm:L1,T20,B32,I256,H2048,P256", 89.6, 43.0}, {"lstm:L1,T49,B100,I10,H64", 3.11, 1.49}};
  for (const Row& row : rows) {
    const Problem problem = problem_of(row.problem);
    for (const double ratio :
         {step_bound(problem, kServer[0]).time_us / row.one_thread_ms / 1e3,
          step_bound(problem, kServer[1]).time_us / row.two_threads_ms / 1e3}) {
      EXPECT_GT(ratio, 0.86) << row.problem;
      EXPECT_LT(ratio, 1.06) << row.problem;
    }
  }
}

}  // namespace
}  // namespace rnntune::tuner
