// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "cuda/usage.hpp"

namespace rnntune::cuda {
namespace {

// CUDA C++ Programming Guide, technical specifications per compute capability; of 7.0 that of CUDA
// 12, the last that compiled for it.
constexpr int kThreads = 1024, kRegisters = 65536, kKibibyte = 1024;
struct Architecture {
  const char* name;
  gpu::Limits limits;
};
constexpr gpu::Limits row(int capability, int threads, int shared_kib) {
  const std::int64_t shared = std::int64_t{shared_kib} * kKibibyte;
  return {capability, 0, kThreads, threads, kRegisters, shared - reserved_shared_bytes(capability),
          shared};
}
constexpr Architecture kArchitectures[] = {
    {"sm_70", row(70, 2048, 96)},    {"sm_75", row(75, 1024, 64)},
    {"sm_80", row(80, 2048, 164)},   {"sm_86", row(86, 1536, 100)},
    {"sm_87", row(87, 1536, 164)},   {"sm_89", row(89, 1536, 100)},
    {"sm_90", row(90, 2048, 228)},   {"sm_100", row(100, 2048, 228)},
    {"sm_103", row(103, 2048, 228)}, {"sm_120", row(120, 1536, 100)},
    {"sm_121", row(121, 1536, 100)},
};

}  // namespace

const gpu::Limits* limits_of(std::string_view architecture) {
  for (const Architecture& candidate : kArchitectures) {
    if (architecture == candidate.name) return &candidate.limits;
  }
  return nullptr;
}

}  // namespace rnntune::cuda
