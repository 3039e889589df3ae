// SPDX-License-Identifier: Apache-2.0
#include "device/geometry.hpp"

#include <initializer_list>

namespace rnntune::gpu {
namespace {

// The same on every architecture up to now (CUDA C++ Programming Guide, technical specifications).
constexpr std::int64_t kMostGridX = 2147483647, kMostGridYZ = 65535;
constexpr std::int64_t kMostBlockXY = 1024, kMostBlockZ = 64;
constexpr std::int64_t kMostCluster = 16;  // beyond 8 only some devices launch
constexpr std::int64_t kMostArguments = 4096;
constexpr int kFirstWithClusters = 90;

struct Row {
  const char* what;
  std::int64_t value, least, most;
};

Error refused(const Kernel& kernel, const std::string& what) {
  return invalid_argument("launch of " + kernel.id().expression + ": " + what);
}

Status within(const Row& row, const Kernel& kernel) {
  if (row.value >= row.least && row.value <= row.most) return {};
  return refused(kernel, std::string(row.what) + ": expected " + std::to_string(row.least) +
                             " to " + std::to_string(row.most) + ", got " +
                             std::to_string(row.value));
}

Status within(std::initializer_list<Row> rows, const Kernel& kernel) {
  for (const Row& row : rows) {
    if (Status status = within(row, kernel); !status.ok()) return status;
  }
  return {};
}

// Of extents that are within their limits: the product of three 32-bit numbers may not fit.
std::int64_t volume(const Extent3& e) { return std::int64_t{e.x} * e.y * e.z; }

Status check_cluster(const LaunchShape& shape, const Limits& limits, const Kernel& kernel) {
  const std::int64_t most = limits.compute_capability >= kFirstWithClusters ? kMostCluster : 1;
  Status status = within({{"cluster x", shape.cluster.x, 1, most},
                          {"cluster y", shape.cluster.y, 1, most},
                          {"cluster z", shape.cluster.z, 1, most}},
                         kernel);
  if (!status.ok()) return status;
  status = within({"blocks of a cluster", volume(shape.cluster), 1, most}, kernel);
  if (!status.ok()) return status;
  const struct {
    const char* what;
    unsigned grid, cluster;
  } pairs[] = {{"grid x", shape.grid.x, shape.cluster.x},
               {"grid y", shape.grid.y, shape.cluster.y},
               {"grid z", shape.grid.z, shape.cluster.z}};
  for (const auto& pair : pairs) {
    if (pair.grid % pair.cluster == 0) continue;
    return refused(kernel, std::string(pair.what) + ": expected a multiple of the cluster's " +
                               std::to_string(pair.cluster) + ", got " + std::to_string(pair.grid));
  }
  return {};
}

}  // namespace

Status check_geometry(const LaunchShape& shape, const Limits& limits, const Kernel& kernel) {
  const KernelResources& uses = kernel.resources();
  Status status =
      within({{"grid x", shape.grid.x, 1, kMostGridX},
              {"grid y", shape.grid.y, 1, kMostGridYZ},
              {"grid z", shape.grid.z, 1, kMostGridYZ},
              {"block x", shape.block.x, 1, kMostBlockXY},
              {"block y", shape.block.y, 1, kMostBlockXY},
              {"block z", shape.block.z, 1, kMostBlockZ},
              {"dynamic shared memory beside the kernel's static, bytes", shape.shared_bytes, 0,
               limits.shared_bytes_per_block - uses.static_shared_bytes}},
             kernel);
  if (!status.ok()) return status;
  const std::int64_t threads = volume(shape.block);
  const std::int64_t by_registers =
      uses.max_threads > 0 ? uses.max_threads : limits.max_threads_per_block;
  status = within({{"threads of a block", threads, 1, limits.max_threads_per_block},
                   {"threads of a block, by the kernel's registers", threads, 1, by_registers}},
                  kernel);
  if (!status.ok()) return status;
  return check_cluster(shape, limits, kernel);
}

Status check_resident(const LaunchShape& shape, const Limits& limits, const Kernel& kernel,
                      int blocks_per_multiprocessor) {
  const std::int64_t most = std::int64_t{blocks_per_multiprocessor} * limits.multiprocessors;
  // Every extent is within 31 bits, so that no product of two wraps; the third one may.
  const std::int64_t plane = std::int64_t{shape.grid.x} * shape.grid.y;
  if (plane <= most && plane * shape.grid.z <= most) return {};
  return refused(kernel, "cooperative grid: expected at most " + std::to_string(most) +
                             " blocks (" + std::to_string(blocks_per_multiprocessor) +
                             " on each of " + std::to_string(limits.multiprocessors) +
                             " multiprocessors), got " + std::to_string(shape.grid.x) + " x " +
                             std::to_string(shape.grid.y) + " x " + std::to_string(shape.grid.z));
}

Status check_arguments(std::size_t bytes, const Kernel& kernel) {
  return within({"bytes of arguments", std::int64_t(bytes), 1, kMostArguments}, kernel);
}

}  // namespace rnntune::gpu
