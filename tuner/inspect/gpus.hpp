// SPDX-License-Identifier: Apache-2.0
// GPUs that need not be here: what is public of each.
#pragma once

#include <span>
#include <string_view>

#include "device/gpu.hpp"

namespace rnntune::tuner {

struct GpuRecord {
  const char* name;  // of --gpu: "h100"
  const char* product;
  const char* architecture;  // "sm_90"; its limits are those of cuda/usage.hpp
  int multiprocessors;
  int memory_gb;
  const char* source;  // of the last two
};

std::span<const GpuRecord> gpu_records();
const GpuRecord* find_gpu(std::string_view name);  // null: no such record

// As the device interface tells it of a real one. The key is no real device's: a tuning database
// answers for the architecture at best.
DeviceInfo info_of(const GpuRecord& record);
gpu::Limits limits_of(const GpuRecord& record);

}  // namespace rnntune::tuner
