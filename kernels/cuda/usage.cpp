// SPDX-License-Identifier: Apache-2.0
#include "cuda/usage.hpp"

#include <cuda_occupancy.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

namespace rnntune::cuda {
namespace {

constexpr int kRegisters = 65536, kKibibyte = 1024;  // of a block; the latter in bytes

// The number before `what` in a line, such as 10 in "Used 10 registers"; 0 where it is not said.
int number_before(std::string_view line, std::string_view what) {
  const std::size_t at = line.find(what);
  if (at == std::string_view::npos || at == 0) return 0;
  std::size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int number = 0;
  std::from_chars(line.data() + begin, line.data() + at, number);
  return number;
}

cudaOccDeviceProp properties_of(const gpu::Limits& limits) {
  cudaOccDeviceProp properties;
  properties.computeMajor = limits.compute_capability / 10;
  properties.computeMinor = limits.compute_capability % 10;
  properties.maxThreadsPerBlock = limits.max_threads_per_block;
  properties.maxThreadsPerMultiprocessor = limits.max_threads_per_multiprocessor;
  properties.regsPerBlock = kRegisters;
  properties.regsPerMultiprocessor = limits.registers_per_multiprocessor;
  properties.warpSize = 32;
  properties.sharedMemPerBlock = 48 * kKibibyte;
  properties.sharedMemPerMultiprocessor = std::size_t(limits.shared_bytes_per_multiprocessor);
  properties.numSms = std::max(1, limits.multiprocessors);  // no part of the answer
  properties.sharedMemPerBlockOptin = std::size_t(limits.shared_bytes_per_block);
  properties.reservedSharedMemPerBlock =
      std::size_t(reserved_shared_bytes(limits.compute_capability));
  return properties;
}

std::string limit_text(unsigned factors) {
  const struct {
    unsigned factor;
    const char* name;
  } rows[] = {{OCC_LIMIT_REGISTERS, "registers"},
              {OCC_LIMIT_SHARED_MEMORY, "shared memory"},
              {OCC_LIMIT_WARPS, "threads"},
              {OCC_LIMIT_BLOCKS, "blocks"},
              {OCC_LIMIT_BARRIERS, "barriers"}};
  std::string text;
  for (const auto& row : rows) {
    if ((factors & row.factor) != 0) text += (text.empty() ? "" : ", ") + std::string(row.name);
  }
  return text;
}

}  // namespace

KernelUsage parse_ptxas_log(std::string_view log, std::string_view lowered_name) {
  KernelUsage usage;
  const std::string entry = "Compiling entry function '" + std::string(lowered_name) + "'";
  bool ours = false;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    if (line.find("Compiling entry function") != std::string_view::npos) {
      ours = line.find(entry) != std::string_view::npos;
    }
    if (!ours) continue;
    // Functions that were not inlined have such a line each.
    if (line.find("stack frame") != std::string_view::npos) {
      usage.stack_bytes = std::max(usage.stack_bytes, number_before(line, " bytes stack frame"));
      usage.spill_store_bytes += number_before(line, " bytes spill stores");
      usage.spill_load_bytes += number_before(line, " bytes spill loads");
    } else if (line.find("Used ") != std::string_view::npos) {
      usage.registers = number_before(line, " registers");
      usage.barriers = number_before(line, " barriers");
      usage.static_shared_bytes = number_before(line, " bytes smem");
    }
  }
  return usage;
}

Residency residency(const KernelUsage& usage, const gpu::Limits& limits, int threads,
                    int dynamic_shared_bytes) {
  const cudaOccDeviceProp properties = properties_of(limits);
  cudaOccFuncAttributes attributes;
  attributes.maxThreadsPerBlock = std::numeric_limits<int>::max();
  attributes.numRegs = usage.registers;
  attributes.sharedSizeBytes = std::size_t(usage.static_shared_bytes);
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes =
      std::size_t(limits.shared_bytes_per_block - usage.static_shared_bytes);
  attributes.numBlockBarriers = std::max(1, usage.barriers);
  const cudaOccDeviceState state;
  cudaOccResult result;
  const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(
      &result, &properties, &attributes, &state, threads, std::size_t(dynamic_shared_bytes));
  if (error != CUDA_OCC_SUCCESS) return {0, "the block's size"};
  return {result.activeBlocksPerMultiprocessor, limit_text(result.limitingFactors)};
}

}  // namespace rnntune::cuda
