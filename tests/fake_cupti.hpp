// SPDX-License-Identifier: Apache-2.0
// A CUPTI that hands out buffers with records made by hand, at once or late, in any order, and
// keeps what it is asked.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "device/cupti.hpp"

namespace rnntune::tuner {

// CUPTI as far as the trace sees it. Its functions have no object to live in: one at a time.
struct FakeCupti {
  FakeCupti() { now = this; }
  ~FakeCupti() { now = nullptr; }
  static inline FakeCupti* now = nullptr;

  // What it is told to do.
  CUptiResult enable_result = CUPTI_SUCCESS;
  CUpti_ActivityKind refused = CUPTI_ACTIVITY_KIND_INVALID;  // gets enable_result
  bool ids_without_calls = true;       // external ids come although the calls are not recorded
  std::size_t buffer_bytes = 1 << 20;  // that it fills of each buffer
  bool reversed = false;               // a launch is told after what it launched
  std::size_t dropped = 0;

  // What it saw.
  std::set<CUpti_ActivityKind> enabled;
  std::vector<std::pair<CUpti_ExternalCorrelationKind, std::uint64_t>> pushed;
  std::size_t buffers_given = 0;

  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::vector<std::vector<std::uint8_t>> records;  // not yet delivered
  std::uint32_t correlation = 0;

  template <class Record>
  void put(const Record& record) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
    records.emplace_back(bytes, bytes + sizeof record);
  }

  // A launch under the ids that are pushed; its correlation id.
  std::uint32_t launch() {
    ++correlation;
    if (!ids_without_calls && enabled.count(CUPTI_ACTIVITY_KIND_DRIVER) == 0) return correlation;
    for (const auto& [kind, id] : pushed) {
      CUpti_ActivityExternalCorrelation record{};
      record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
      record.externalKind = kind;
      record.externalId = id;
      record.correlationId = correlation;
      put(record);
    }
    return correlation;
  }

  void kernel(const char* name, std::uint64_t start, std::uint64_t end, std::uint32_t stream = 7) {
    kernel_of(launch(), name, start, end, stream);
  }
  void kernel_of(std::uint32_t launched, const char* name, std::uint64_t start, std::uint64_t end,
                 std::uint32_t stream = 7) {
    CUpti_ActivityKernel9 record{};
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    record.name = name;
    record.start = start;
    record.end = end;
    record.streamId = stream;
    record.correlationId = launched;
    put(record);
  }
  void fill(std::uint64_t start, std::uint64_t end) {
    CUpti_ActivityMemset4 record{};
    record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    record.start = start;
    record.end = end;
    record.correlationId = launch();
    put(record);
  }
  void graph(std::uint64_t start, std::uint64_t end) {
    CUpti_ActivityGraphTrace record{};
    record.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
    record.start = start;
    record.end = end;
    record.correlationId = launch();
    put(record);
  }

  // Hands the records over in as many buffers as they need.
  void deliver() {
    if (reversed) std::reverse(records.begin(), records.end());
    std::uint8_t* buffer = nullptr;
    std::size_t room = 0, most = 1, used = 0;
    const auto hand_back = [&] {
      if (buffer != nullptr) complete(nullptr, 0, buffer, room, used);
      buffer = nullptr;
    };
    for (const auto& record : records) {
      if (buffer != nullptr && used + record.size() > std::min(room, buffer_bytes)) hand_back();
      if (buffer == nullptr) {
        request(&buffer, &room, &most);
        ++buffers_given;
        used = 0;
        ASSERT_NE(buffer, nullptr);
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(buffer) % 8, 0u);
        ASSERT_EQ(most, 0u);
      }
      std::memcpy(buffer + used, record.data(), record.size());
      used += record.size();
    }
    hand_back();
    if (records.empty() && dropped > 0) complete(nullptr, 0, nullptr, 0, 0);
    records.clear();
  }

  static std::size_t size_of(CUpti_ActivityKind kind) {
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) return sizeof(CUpti_ActivityKernel9);
    if (kind == CUPTI_ACTIVITY_KIND_MEMSET) return sizeof(CUpti_ActivityMemset4);
    if (kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE) return sizeof(CUpti_ActivityGraphTrace);
    if (kind == CUPTI_ACTIVITY_KIND_DRIVER) return sizeof(CUpti_ActivityAPI);
    return sizeof(CUpti_ActivityExternalCorrelation);
  }

  CuptiActivity table() const;
};

inline CuptiActivity FakeCupti::table() const {
  CuptiActivity table;
  table.cuptiGetResultString = [](CUptiResult result, const char** text) {
    *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
            : result == CUPTI_ERROR_NOT_INITIALIZED       ? "CUPTI_ERROR_NOT_INITIALIZED"
            : result == CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED
                ? "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED"
                : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS;
  };
  table.cuptiActivityRegisterCallbacks = [](CUpti_BuffersCallbackRequestFunc request,
                                            CUpti_BuffersCallbackCompleteFunc complete) {
    now->request = request;
    now->complete = complete;
    return CUPTI_SUCCESS;
  };
  table.cuptiActivityEnable = [](CUpti_ActivityKind kind) {
    if (kind == now->refused) return now->enable_result;
    now->enabled.insert(kind);
    return CUPTI_SUCCESS;
  };
  table.cuptiActivityDisable = [](CUpti_ActivityKind kind) {
    now->enabled.erase(kind);
    return CUPTI_SUCCESS;
  };
  table.cuptiActivityFlushAll = [](std::uint32_t) {
    now->deliver();
    return CUPTI_SUCCESS;
  };
  table.cuptiActivityGetNextRecord = [](std::uint8_t* buffer, std::size_t bytes,
                                        CUpti_Activity** record) {
    std::uint8_t* next = buffer;
    if (*record != nullptr) {
      next = reinterpret_cast<std::uint8_t*>(*record) + size_of((*record)->kind);
    }
    if (next >= buffer + bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity*>(next);
    return CUPTI_SUCCESS;
  };
  table.cuptiActivityGetNumDroppedRecords = [](CUcontext, std::uint32_t, std::size_t* dropped) {
    *dropped = std::exchange(now->dropped, 0);
    return CUPTI_SUCCESS;
  };
  table.cuptiActivityPushExternalCorrelationId = [](CUpti_ExternalCorrelationKind kind,
                                                    std::uint64_t id) {
    now->pushed.emplace_back(kind, id);
    return CUPTI_SUCCESS;
  };
  table.cuptiActivityPopExternalCorrelationId = [](CUpti_ExternalCorrelationKind kind,
                                                   std::uint64_t* last) {
    if (now->pushed.empty() || now->pushed.back().first != kind) return CUPTI_ERROR_QUEUE_EMPTY;
    *last = now->pushed.back().second;
    now->pushed.pop_back();
    return CUPTI_SUCCESS;
  };
  return table;
}

}  // namespace rnntune::tuner
