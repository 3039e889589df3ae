// SPDX-License-Identifier: Apache-2.0
// Counters: names and passes for chips by the real library, which needs no GPU for that, and the
// passes over a step by a fake of it.
#include "tuner/gpu/counters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "device/shared_library.hpp"
#include "kernels/simt/sanitizers.hpp"
#include "tuner/gpu/cupti_counters.hpp"
#include "tuner/gpu/step_counters.hpp"

namespace rnntune::tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

#if defined(RNNTUNE_SIMT_ADDRESS_SANITIZER)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

class RealCupti : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "CUPTI opens parts in a way that the address sanitizer forbids";
    const auto library = open_cupti(cuda_library_folders(""));
    if (!library.ok()) GTEST_SKIP() << library.error().message;
    const auto loaded = load_cupti_counters(*library);
    if (!loaded.ok()) GTEST_SKIP() << loaded.error().message;
    EXPECT_TRUE(load_cupti_activity(*library).ok());
    cupti = *loaded;
    CUpti_Profiler_Host_GetSupportedChips_Params chips{};
    chips.structSize = CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE;
    const char* name = nullptr;  // not even this answers in a CUPTI that waits for a driver
    if (cupti.cuptiGetResultString(CUPTI_SUCCESS, &name) != CUPTI_SUCCESS &&
        !open_cuda_driver().ok()) {
      GTEST_SKIP() << "this CUPTI (13.5 is one) does nothing without a driver";
    }
    ASSERT_EQ(cupti.cuptiProfilerHostGetSupportedChips(&chips), CUPTI_SUCCESS);
    known.assign(chips.ppChipNames, chips.ppChipNames + chips.numChips);
  }
  bool knows(const std::string& chip) const {
    return std::count(known.begin(), known.end(), chip) > 0;
  }

  CuptiCounters cupti;
  std::vector<std::string> known;  // chips
};

TEST_F(RealCupti, EveryChipHasTheCountersInAFewPasses) {
  struct Row {
    const char* chip;
    std::vector<std::string> absent;
  };
  int tried = 0;
  for (const Row& row : {Row{"GA100", {"stall_gmma_count"}}, Row{"GH100", {}},
                         Row{"GB100", {"stall_gmma_count"}}, Row{"GB202", {"stall_gmma_count"}}}) {
    SCOPED_TRACE(row.chip);
    if (!knows(row.chip)) continue;
    ++tried;
    const auto host = CounterHost::open(cupti, row.chip, {});
    ASSERT_TRUE(host.ok()) << host.error().message;
    EXPECT_EQ(host->absent(), row.absent);
    EXPECT_EQ(host->planned().size() + host->absent().size(), counters().size());
    EXPECT_THAT(host->config(), Not(IsEmpty()));
    // The step runs this often, so the counters must pack well: 5 or 6 with CUPTI 13.0.
    EXPECT_GE(host->passes(), 2u);
    EXPECT_LE(host->passes(), 8u);
  }
  EXPECT_GE(tried, 2);  // every CUPTI with this interface knows GA100 and GH100
}

TEST_F(RealCupti, ChipsGiveACounterByTheirOwnName) {
  for (const auto& [chip, metric] : {std::pair("GH100", "dram__bytes_read.sum"),
                                     std::pair("GB202", "dram__bytes_op_read.sum")}) {
    if (!knows(chip)) continue;
    const auto host = CounterHost::open(cupti, chip, {});
    ASSERT_TRUE(host.ok()) << host.error().message;
    const auto& planned = host->planned();
    const auto read = std::find_if(planned.begin(), planned.end(), [](const CounterValue& value) {
      return value.name == "dram_read_bytes";
    });
    ASSERT_NE(read, planned.end());
    EXPECT_EQ(read->metric, metric);
  }
}

TEST_F(RealCupti, AnUnknownChipIsAnErrorThatNamesIt) {
  const auto host = CounterHost::open(cupti, "NV1", {});
  ASSERT_FALSE(host.ok());
  EXPECT_THAT(host.error().message, HasSubstr("cuptiProfilerHostInitialize for NV1: CUPTI_ERROR_"));
}

// The driver and CUPTI as far as a count sees them; both write down what they are asked.
struct Fake {
  Fake() { now = this; }
  ~Fake() { now = nullptr; }
  static inline Fake* now = nullptr;

  std::vector<std::string> calls;
  std::string failing;  // a function of CUPTI
  CUptiResult failure = CUPTI_ERROR_UNKNOWN;
  CUresult init = CUDA_SUCCESS;
  std::size_t passes = 3;  // announced
  std::size_t needed = 3;  // asked for
  std::size_t stopped = 0;

  CUptiResult answer(const char* name) {
    calls.push_back(name);
    return failing == name ? failure : CUPTI_SUCCESS;
  }

  CudaDriver driver() const;
  CuptiCounters cupti() const;
  void add_host(CuptiCounters& table) const;
};

CudaDriver Fake::driver() const {
  CudaDriver table;
  table.cuInit = [](unsigned) { return now->calls.push_back("cuInit"), now->init; };
  table.cuGetErrorName = [](CUresult, const char** text) {
    return *text = "CUDA_ERROR_NO_DEVICE", CUDA_SUCCESS;
  };
  table.cuGetErrorString = [](CUresult, const char** text) { return *text = "none", CUDA_SUCCESS; };
  table.cuDeviceGet = [](CUdevice* device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; };
  table.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice) {
    now->calls.push_back("retain");
    return *context = reinterpret_cast<CUcontext>(now), CUDA_SUCCESS;
  };
  table.cuDevicePrimaryCtxRelease = [](CUdevice) {
    return now->calls.push_back("release"), CUDA_SUCCESS;
  };
  table.cuCtxPushCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  table.cuCtxPopCurrent = [](CUcontext*) { return now->calls.push_back("pop"), CUDA_SUCCESS; };
  return table;
}

void Fake::add_host(CuptiCounters& table) const {
  table.cuptiProfilerHostInitialize = [](CUpti_Profiler_Host_Initialize_Params* params) {
    EXPECT_STREQ(params->pChipName, "GX1");
    EXPECT_NE(params->pCounterAvailabilityImage, nullptr);
    params->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(now);
    return now->answer("host");
  };
  table.cuptiProfilerHostDeinitialize = [](auto*) { return now->answer("end host"); };
  table.cuptiProfilerHostGetBaseMetrics = [](CUpti_Profiler_Host_GetBaseMetrics_Params* params) {
    static const char* names[] = {"gpu__time_duration", "lts__t_bytes"};
    params->ppMetricNames = names;
    params->numMetrics = params->metricType == CUPTI_METRIC_TYPE_COUNTER ? 2 : 0;
    return CUPTI_SUCCESS;
  };
  table.cuptiProfilerHostConfigAddMetrics = [](auto* params) {
    EXPECT_EQ(params->numMetrics, 2u);
    return now->answer("add");
  };
  table.cuptiProfilerHostGetConfigImageSize = [](auto* params) {
    return params->configImageSize = 16, CUPTI_SUCCESS;
  };
  table.cuptiProfilerHostGetConfigImage = [](auto* params) {
    return std::memset(params->pConfigImage, 7, params->configImageSize), CUPTI_SUCCESS;
  };
  table.cuptiProfilerHostGetNumOfPasses = [](auto* params) {
    return params->numOfPasses = now->passes, CUPTI_SUCCESS;
  };
  table.cuptiProfilerHostEvaluateToGpuValues = [](auto* params) {
    for (std::size_t i = 0; i < params->numMetrics; ++i)
      params->pMetricValues[i] = 10.0 + double(i);
    return now->answer("evaluate");
  };
}

CuptiCounters Fake::cupti() const {
  CuptiCounters table;
  add_host(table);
  table.cuptiGetResultString = [](CUptiResult result, const char** text) {
    *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
                                                          : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS;
  };
  table.cuptiProfilerInitialize = [](auto*) { return now->answer("initialize"); };
  table.cuptiProfilerDeInitialize = [](auto*) { return now->answer("deinitialize"); };
  table.cuptiDeviceGetChipName = [](auto* params) {
    return params->pChipName = "GX1", now->answer("chip");
  };
  table.cuptiProfilerGetCounterAvailability = [](auto* params) {
    return params->counterAvailabilityImageSize = 8, CUPTI_SUCCESS;
  };
  table.cuptiRangeProfilerEnable = [](auto* params) {
    params->pRangeProfilerObject = reinterpret_cast<CUpti_RangeProfiler_Object*>(now);
    return now->answer("enable");
  };
  table.cuptiRangeProfilerDisable = [](auto*) { return now->answer("disable"); };
  table.cuptiRangeProfilerGetCounterDataSize = [](auto* params) {
    return params->counterDataSize = 32, CUPTI_SUCCESS;
  };
  table.cuptiRangeProfilerCounterDataImageInitialize = [](auto*) { return CUPTI_SUCCESS; };
  table.cuptiRangeProfilerSetConfig = [](CUpti_RangeProfiler_SetConfig_Params* params) {
    EXPECT_EQ(params->configSize, 16u);
    EXPECT_EQ(params->counterDataImageSize, 32u);
    EXPECT_EQ(params->replayMode, CUPTI_UserReplay);
    return now->answer("config");
  };
  table.cuptiRangeProfilerStart = [](auto*) { return now->answer("start"); };
  table.cuptiRangeProfilerPushRange = [](auto*) { return now->answer("push"); };
  table.cuptiRangeProfilerPopRange = [](auto*) { return now->answer("pop range"); };
  table.cuptiRangeProfilerStop = [](CUpti_RangeProfiler_Stop_Params* params) {
    params->isAllPassSubmitted = ++now->stopped >= now->needed;
    return now->answer("stop");
  };
  table.cuptiRangeProfilerDecodeData = [](auto*) { return now->answer("decode"); };
  return table;
}

TEST(CountStep, RunsTheStepOnceInEachPass) {
  Fake fake;
  const auto report = count_step(fake.driver(), fake.cupti(), 0, [&] {
    fake.calls.push_back("STEP");
    return Status();
  });
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_THAT(fake.calls, ElementsAre("cuInit", "retain", "initialize", "chip", "host", "add",
                                      "enable", "config", "start", "push", "STEP", "pop range",
                                      "stop", "start", "push", "STEP", "pop range", "stop", "start",
                                      "push", "STEP", "pop range", "stop", "decode", "evaluate",
                                      "end host", "disable", "deinitialize", "pop", "release"));
  EXPECT_EQ(report->chip, "GX1");
  EXPECT_EQ(report->passes, 3u);
  ASSERT_EQ(report->values.size(), 2u);
  EXPECT_EQ(report->values[0].name, "time_ns");
  EXPECT_EQ(report->values[0].value, 10);
  EXPECT_EQ(report->values[1].name, "l2_bytes");
  EXPECT_EQ(report->values[1].value, 11);
  EXPECT_EQ(report->absent.size(), counters().size() - 2);
}

TEST(CountStep, WithoutADriverNothingOfCuptiIsCalled) {
  Fake fake;
  fake.init = CUDA_ERROR_NO_DEVICE;
  const auto report = count_step(fake.driver(), fake.cupti(), 0, [] { return Status(); });
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message, HasSubstr("cuInit: CUDA_ERROR_NO_DEVICE"));
  EXPECT_THAT(fake.calls, ElementsAre("cuInit"));
}

TEST(CountStep, EveryFailureIsToldAndLeavesNothingBehind) {
  for (const char* failing : {"initialize", "chip", "host", "add", "enable", "config", "start",
                              "push", "pop range", "stop", "decode", "evaluate"}) {
    SCOPED_TRACE(failing);
    Fake fake;
    fake.failing = failing;
    fake.failure = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    const auto report = count_step(fake.driver(), fake.cupti(), 0, [] { return Status(); });
    ASSERT_FALSE(report.ok());
    EXPECT_THAT(report.error().message, HasSubstr("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES; the"));
    const auto count = [&](const char* name) {
      return std::count(fake.calls.begin(), fake.calls.end(), name);
    };
    EXPECT_EQ(count("retain"), count("release"));
    EXPECT_EQ(count("initialize") - (failing == std::string("initialize")), count("deinitialize"));
    EXPECT_EQ(count("enable") - (failing == std::string("enable")), count("disable"));
    EXPECT_EQ(count("host") - (failing == std::string("host")), count("end host"));
    EXPECT_EQ(count("start") - (failing == std::string("start")), count("stop"));
  }
}

TEST(CountStep, ARefusalIsOneLineThatSaysWhatHelps) {
  Fake fake;
  fake.failing = "enable";
  fake.failure = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  int steps = 0;
  StepCounting counting(
      [&](const Probe& step) { return count_step(fake.driver(), fake.cupti(), 0, step); },
      rnntune::open_device("cpu").value(),
      std::shared_ptr<Clock>(std::shared_ptr<void>(), &steady_clock()));
  const std::vector<CountedStep> counted{{"rnntune", [&] { return ++steps, Status(); }}};
  EXPECT_THAT(counting.count(counted), IsEmpty());
  EXPECT_EQ(counting.news(),
            "no GPU counters: cuptiRangeProfilerEnable: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES; the "
            "administrator must permit it: NVreg_RestrictProfilingToAdminUsers=0, or "
            "CAP_SYS_ADMIN");
  EXPECT_EQ(steps, 0);
  fake.failing.clear();
  EXPECT_THAT(counting.count(counted), IsEmpty()) << "refused once, not asked again";
}

TEST(CountStep, AFailedStepAndEndlessPassesAreErrors) {
  Fake fake;
  const auto failed = count_step(fake.driver(), fake.cupti(), 0, [] {
    return Status(Error{ErrorCode::internal, "no step"});
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "no step");
  Fake endless;
  endless.needed = 1000;
  const auto report = count_step(endless.driver(), endless.cupti(), 0, [] { return Status(); });
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message, HasSubstr("more passes than the 3 it announced"));
}

}  // namespace
}  // namespace rnntune::tuner
