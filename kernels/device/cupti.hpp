// SPDX-License-Identifier: Apache-2.0
// CUPTI as two tables of functions loaded by name: activity records, which every CUPTI since CUDA
// 12 has, and the counters of the range profiler, which came with CUDA 12.6.
//
// Without a driver cuptiRangeProfilerEnable and cuptiDeviceGetChipName crash: call nothing of these
// tables but cuptiGetResultString and cuptiProfilerHost* before cuInit succeeded. Those two work
// without one up to CUPTI 13.0; 13.5 answers CUPTI_ERROR_UNKNOWN to everything.
#pragma once

#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <string_view>

#include "device/shared_library.hpp"

#define RNNTUNE_CUPTI_ACTIVITY(X)           \
  X(cuptiGetResultString)                   \
  X(cuptiActivityRegisterCallbacks)         \
  X(cuptiActivityEnable)                    \
  X(cuptiActivityDisable)                   \
  X(cuptiActivityFlushAll)                  \
  X(cuptiActivityGetNextRecord)             \
  X(cuptiActivityGetNumDroppedRecords)      \
  X(cuptiActivityPushExternalCorrelationId) \
  X(cuptiActivityPopExternalCorrelationId)

#define RNNTUNE_CUPTI_COUNTERS(X)                 \
  X(cuptiGetResultString)                         \
  X(cuptiProfilerHostInitialize)                  \
  X(cuptiProfilerHostDeinitialize)                \
  X(cuptiProfilerHostGetSupportedChips)           \
  X(cuptiProfilerHostGetBaseMetrics)              \
  X(cuptiProfilerHostConfigAddMetrics)            \
  X(cuptiProfilerHostGetConfigImageSize)          \
  X(cuptiProfilerHostGetConfigImage)              \
  X(cuptiProfilerHostGetNumOfPasses)              \
  X(cuptiProfilerHostEvaluateToGpuValues)         \
  X(cuptiProfilerInitialize)                      \
  X(cuptiProfilerDeInitialize)                    \
  X(cuptiProfilerGetCounterAvailability)          \
  X(cuptiDeviceGetChipName)                       \
  X(cuptiRangeProfilerEnable)                     \
  X(cuptiRangeProfilerDisable)                    \
  X(cuptiRangeProfilerGetCounterDataSize)         \
  X(cuptiRangeProfilerCounterDataImageInitialize) \
  X(cuptiRangeProfilerSetConfig)                  \
  X(cuptiRangeProfilerStart)                      \
  X(cuptiRangeProfilerStop)                       \
  X(cuptiRangeProfilerPushRange)                  \
  X(cuptiRangeProfilerPopRange)                   \
  X(cuptiRangeProfilerDecodeData)

namespace rnntune {

struct CuptiActivity {
#define X(name) decltype(&::name) name = nullptr;
  RNNTUNE_CUPTI_ACTIVITY(X)
#undef X
};

struct CuptiCounters {
#define X(name) decltype(&::name) name = nullptr;
  RNNTUNE_CUPTI_COUNTERS(X)
#undef X
};

Result<CuptiActivity> load_cupti_activity(const SharedLibrary& library);
Result<CuptiCounters> load_cupti_counters(const SharedLibrary& library);
Result<SharedLibrary> open_cupti(std::span<const std::string> folders);

// "cuptiActivityEnable: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", and what helps where something does.
// `call` is what failed, `result_string` cuptiGetResultString of either table.
Error cupti_error(decltype(&::cuptiGetResultString) result_string, CUptiResult result,
                  std::string_view call);

}  // namespace rnntune
