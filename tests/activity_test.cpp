// SPDX-License-Identifier: Apache-2.0
// Times from activity records that a fake CUPTI delivers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fake_cupti.hpp"
#include "tuner/gpu/cupti_trace.hpp"

namespace rnntune::tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ActivityTest : public testing::Test {
 protected:
  Result<std::unique_ptr<ActivityTrace>> open(GraphDetail detail = GraphDetail::whole) {
    return open_activity_trace(cupti.table(), detail, [this] {
      cupti.fill(1, 2);
      return Status();
    });
  }
  std::unique_ptr<ActivityTrace> opened(GraphDetail detail = GraphDetail::whole) {
    auto trace = open(detail);
    if (!trace.ok()) ADD_FAILURE() << trace.error().message;
    return trace.ok() ? std::move(trace.value()) : nullptr;
  }
  std::string why(ActivityTrace& trace) {
    const auto activities = trace.end();
    return activities.ok() ? "no error" : activities.error().message;
  }

  FakeCupti cupti;
};

std::vector<std::string> names(const Activities& activities) {
  std::vector<std::string> all;
  for (const Activity& activity : activities) all.push_back(activity.name);
  return all;
}

TEST_F(ActivityTest, TimesAStepByItsOwnRecords) {
  const auto trace = opened();
  cupti.kernel("warm", 10, 900);  // of no sample
  ASSERT_TRUE(trace->begin().ok());
  cupti.fill(1000, 1500);
  cupti.kernel("gemm", 2000, 5000);
  cupti.kernel("gates", 5200, 6000);
  cupti.kernel("gemm", 6000, 8000);
  const auto step = trace->end();
  ASSERT_TRUE(step.ok()) << step.error().message;
  EXPECT_THAT(names(*step), ElementsAre("fill", "gemm", "gates", "gemm"));
  EXPECT_DOUBLE_EQ(span_us(*step), 7);
  EXPECT_DOUBLE_EQ(busy_us(*step), 6.3);
  const auto kernels = by_kernel(*step);
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0].name, "gemm");
  EXPECT_EQ(kernels[0].count, 2);
  EXPECT_DOUBLE_EQ(kernels[0].total_us, 5);
  EXPECT_EQ(kernels[2].name, "fill");
}

TEST_F(ActivityTest, OrderOfRecordsDoesNotMatter) {
  const auto trace = opened();
  cupti.reversed = true;
  ASSERT_TRUE(trace->begin().ok());
  cupti.kernel("late", 5000, 6000);
  cupti.kernel("early", 1000, 2000);
  const auto step = trace->end();
  ASSERT_TRUE(step.ok()) << step.error().message;
  EXPECT_THAT(names(*step), ElementsAre("early", "late"));
  EXPECT_DOUBLE_EQ(span_us(*step), 5);
}

TEST_F(ActivityTest, ManyBuffersAreOneSampleAndAreUsedAgain) {
  const auto trace = opened();
  cupti.buffer_bytes = 1000;  // a few records
  for (int sample = 0; sample < 3; ++sample) {
    ASSERT_TRUE(trace->begin().ok());
    for (std::uint64_t i = 1; i <= 100; ++i) cupti.kernel("k", 1000 * i, 1000 * i + 500);
    const auto step = trace->end();
    ASSERT_TRUE(step.ok()) << step.error().message;
    ASSERT_EQ(step->size(), 100u);
    EXPECT_DOUBLE_EQ(busy_us(*step), 50);
  }
  EXPECT_GT(cupti.buffers_given, 60u);
}

TEST_F(ActivityTest, OverlapOnTwoStreamsCountsOnce) {
  const auto trace = opened();
  ASSERT_TRUE(trace->begin().ok());
  cupti.kernel("long", 1000, 9000, 1);
  cupti.kernel("inside", 2000, 3000, 2);
  cupti.kernel("across", 8000, 11000, 2);
  cupti.kernel("after", 12000, 13000, 1);
  const auto step = trace->end();
  ASSERT_TRUE(step.ok()) << step.error().message;
  EXPECT_DOUBLE_EQ(span_us(*step), 12);
  EXPECT_DOUBLE_EQ(busy_us(*step), 11);
  EXPECT_EQ((*step)[1].stream, 2u);
}

TEST_F(ActivityTest, PhasesSumWhatTheyLaunched) {
  const auto trace = opened();
  ASSERT_TRUE(trace->begin().ok());
  ASSERT_TRUE(trace->enter("pack").ok());
  cupti.kernel("transpose", 1000, 2000);
  ASSERT_TRUE(trace->leave().ok());
  for (std::uint64_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(trace->enter("recurrence").ok());
    cupti.kernel("gemm", 3000 + 5000 * i, 4000 + 5000 * i);
    cupti.kernel("gates", 5000 + 5000 * i, 5500 + 5000 * i);
    ASSERT_TRUE(trace->leave().ok());
  }
  cupti.kernel("other", 20000, 21000);
  const auto step = trace->end();
  ASSERT_TRUE(step.ok()) << step.error().message;
  const auto phases = by_phase(*step);
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[0].name, "pack");
  EXPECT_DOUBLE_EQ(phases[0].total_us, 1);
  EXPECT_EQ(phases[1].name, "recurrence");
  EXPECT_EQ(phases[1].count, 4);
  EXPECT_DOUBLE_EQ(phases[1].total_us, 3);
  EXPECT_EQ(phases[2].name, "");
}

TEST_F(ActivityTest, GraphsAreWholeOrKernelByKernel) {
  {
    const auto trace = opened(GraphDetail::whole);
    EXPECT_TRUE(cupti.enabled.count(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
    ASSERT_TRUE(trace->begin().ok());
    cupti.graph(1000, 4000);
    const auto step = trace->end();
    ASSERT_TRUE(step.ok()) << step.error().message;
    EXPECT_DOUBLE_EQ(span_us(*step), 3);
  }
  const auto trace = opened(GraphDetail::kernels);
  EXPECT_FALSE(cupti.enabled.count(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
  ASSERT_TRUE(trace->begin().ok());
  const std::uint32_t launch = cupti.launch();  // one launch, many kernels
  cupti.kernel_of(launch, "first", 1000, 2000);
  cupti.kernel_of(launch, "second", 2000, 4000);
  const auto step = trace->end();
  ASSERT_TRUE(step.ok()) << step.error().message;
  EXPECT_THAT(names(*step), ElementsAre("first", "second"));
}

TEST_F(ActivityTest, OtherKindsArePassedOver) {
  const auto trace = opened();
  ASSERT_TRUE(trace->begin().ok());
  CUpti_ActivityAPI api{};
  api.kind = CUPTI_ACTIVITY_KIND_DRIVER;
  cupti.put(api);
  cupti.kernel("k", 1000, 2000);
  cupti.put(api);
  const auto step = trace->end();
  ASSERT_TRUE(step.ok()) << step.error().message;
  EXPECT_THAT(names(*step), ElementsAre("k"));
}

TEST_F(ActivityTest, WhatCannotBeTrustedIsAnError) {
  const auto trace = opened();
  ASSERT_TRUE(trace->begin().ok());
  cupti.kernel("k", 1000, 2000);
  cupti.dropped = 12;
  EXPECT_EQ(why(*trace), "CUPTI dropped 12 records");
  ASSERT_TRUE(trace->begin().ok());
  EXPECT_EQ(why(*trace), "CUPTI gave no record of the sample");
  ASSERT_TRUE(trace->begin().ok());
  cupti.kernel("k", 0, 0);
  EXPECT_EQ(why(*trace), "CUPTI's record of k has no time");
  ASSERT_TRUE(trace->begin().ok());
  cupti.kernel("k", 1000, 2000);
  auto pushed = std::exchange(cupti.pushed, {});  // another thread's launch
  cupti.kernel("stranger", 1500, 1700);
  cupti.pushed = pushed;
  EXPECT_EQ(why(*trace), "CUPTI's record of stranger lies in the sample and is of no launch of it");
  // Elsewhere in time it does no harm, and an error leaves the next sample alone.
  ASSERT_TRUE(trace->begin().ok());
  cupti.kernel("k", 1000, 2000);
  pushed = std::exchange(cupti.pushed, {});
  cupti.kernel("stranger", 100, 200);
  cupti.pushed = pushed;
  EXPECT_EQ(why(*trace), "no error");
}

TEST_F(ActivityTest, ARecordThatComesASampleLateIsFound) {
  const auto trace = opened();
  ASSERT_TRUE(trace->begin().ok());
  cupti.kernel("k", 1000, 2000);
  const std::uint32_t held = cupti.launch();
  const auto launches = std::exchange(cupti.records, {});
  cupti.kernel("k", 1000, 2000);
  ASSERT_TRUE(trace->end().ok());
  ASSERT_TRUE(trace->begin().ok());
  cupti.records = launches;
  cupti.kernel_of(held, "late", 3000, 9000);
  EXPECT_THAT(why(*trace), HasSubstr("came a sample late"));
}

TEST_F(ActivityTest, CallsAreRecordedOnlyWhereIdsNeedThem) {
  {
    const auto trace = opened();
    EXPECT_FALSE(cupti.enabled.count(CUPTI_ACTIVITY_KIND_DRIVER));
  }
  EXPECT_THAT(cupti.enabled, IsEmpty());
  cupti.ids_without_calls = false;
  const auto trace = opened();
  EXPECT_TRUE(cupti.enabled.count(CUPTI_ACTIVITY_KIND_DRIVER));
}

TEST_F(ActivityTest, RefusalsAreOneLineAndLeaveNothingEnabled) {
  struct Row {
    CUpti_ActivityKind kind;
    CUptiResult result;
    const char* message;
  };
  const Row rows[] = {
      {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES,
       "cuptiActivityEnable CONCURRENT_KERNEL: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES; the "
       "administrator must permit it: NVreg_RestrictProfilingToAdminUsers=0, or CAP_SYS_ADMIN"},
      {CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ERROR_NOT_INITIALIZED,
       "cuptiActivityEnable MEMSET: CUPTI_ERROR_NOT_INITIALIZED"},
      {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED,
       "cuptiActivityEnable CONCURRENT_KERNEL: CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED"}};
  for (const Row& row : rows) {
    cupti.refused = row.kind;
    cupti.enable_result = row.result;
    const auto trace = open();
    ASSERT_FALSE(trace.ok());
    EXPECT_EQ(trace.error().message, row.message);
    EXPECT_THAT(cupti.enabled, IsEmpty());
  }
}

TEST_F(ActivityTest, OneTraceAtATime) {
  const auto first = opened();
  const auto second = open();
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("another trace of CUPTI is open"));
  EXPECT_FALSE(cupti.enabled.empty());  // the first one still works
}

TEST(Activity, NothingTakesNoTime) {
  EXPECT_EQ(span_us({}), 0);
  EXPECT_EQ(busy_us({}), 0);
  EXPECT_THAT(by_kernel({}), IsEmpty());
}

}  // namespace
}  // namespace rnntune::tuner
