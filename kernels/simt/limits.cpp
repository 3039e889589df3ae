// SPDX-License-Identifier: Apache-2.0
#include "simt/limits.hpp"

#include <algorithm>
#include <string>

#include "simt/launch.hpp"

namespace rnntune::simt {
namespace {

// The multiprocessors of an H100 (CUDA C++ Programming Guide, technical specifications of compute
// capability 9.0), but so few that all their threads fit into one cooperative launch here.
constexpr gpu::Limits kMachine{.compute_capability = 90,
                               .multiprocessors = 8,
                               .max_threads_per_block = kMaxBlockThreads,
                               .max_threads_per_multiprocessor = 2048,
                               .registers_per_multiprocessor = 65536,
                               .shared_bytes_per_block = kMaxSharedBytes,
                               .shared_bytes_per_multiprocessor = 228 * 1024};
constexpr std::int64_t kMaxBlocksPerMultiprocessor = 32;
constexpr std::int64_t kReservedSharedBytes = 1024;  // of each block
constexpr std::int64_t kL2Bytes = std::int64_t{50} << 20;
static_assert(kMachine.multiprocessors * kMachine.max_threads_per_multiprocessor <=
              static_cast<int>(kMaxCooperativeThreads));

}  // namespace

const gpu::Limits kLimits = kMachine;

DeviceInfo describe(const OpenOptions& options) {
  DeviceInfo info;
  info.backend = "simt";
  info.name = "CUDA device emulated on the host";
  info.architecture = "simt/sm_" + std::to_string(kMachine.compute_capability);
  info.l2_bytes = kL2Bytes;
  info.memory_bytes = options.memory_bytes;
  info.properties = {{"compute_capability", std::to_string(kMachine.compute_capability / 10) + "." +
                                                std::to_string(kMachine.compute_capability % 10)},
                     {"multiprocessors", std::to_string(kMachine.multiprocessors)},
                     {"memory_gib", std::to_string(options.memory_bytes >> 30)},
                     {"l2_bytes", std::to_string(kL2Bytes)}};
  info.key = "simt";
  for (const auto& [name, value] : info.properties) info.key += ";" + name + "=" + value;
  return info;
}

int resident_blocks(const gpu::LaunchShape& shape) {
  constexpr std::int64_t kWarp = 32;
  const std::int64_t threads = std::int64_t{shape.block.x} * shape.block.y * shape.block.z;
  const std::int64_t warps = (threads + kWarp - 1) / kWarp;
  return static_cast<int>(std::min(
      {kMaxBlocksPerMultiprocessor, kMachine.max_threads_per_multiprocessor / (warps * kWarp),
       kMachine.shared_bytes_per_multiprocessor /
           (std::int64_t{shape.shared_bytes} + kReservedSharedBytes)}));
}

}  // namespace rnntune::simt
