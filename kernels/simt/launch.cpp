// SPDX-License-Identifier: Apache-2.0
#include "simt/launch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <string>

#include "simt/race.hpp"
#include "simt/scheduler.hpp"

namespace rnntune::simt {
namespace {

struct Limit {
  const char* name;
  std::uint64_t low, high, value;
};

}  // namespace

constinit RaceHooks race_hooks;

Status check_geometry(const gpu::LaunchShape& shape) {
  const auto& [grid, block, shared_bytes, cluster, cooperative] = shape;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  const std::uint64_t clustered = std::uint64_t{cluster.x} * cluster.y * cluster.z;
  const Limit limits[] = {
      {"grid.x", 1, 0x7fffffff, grid.x},
      {"grid.y", 1, 65535, grid.y},
      {"grid.z", 1, 65535, grid.z},
      {"block.x", 1, kMaxBlockThreads, block.x},
      {"block.y", 1, kMaxBlockThreads, block.y},
      {"block.z", 1, 64, block.z},
      {"threads of a block", 1, kMaxBlockThreads, threads},
      {"dynamic shared memory in bytes", 0, kMaxSharedBytes, shared_bytes},
      {"blocks of a cluster (none in the emulator)", 1, 1, clustered},
      {"threads of a cooperative launch", 1, kMaxCooperativeThreads,
       cooperative ? (blocks > kMaxCooperativeThreads ? blocks : blocks * threads) : 1},
  };
  for (const Limit& limit : limits) {
    if (limit.value >= limit.low && limit.value <= limit.high) continue;
    return invalid_argument("launch: " + std::string(limit.name) + ": expected " +
                            std::to_string(limit.low) + " to " + std::to_string(limit.high) +
                            ", got " + std::to_string(limit.value));
  }
  return {};
}

Status launch(const gpu::LaunchShape& shape, const std::function<void()>& body,
              const LaunchOptions& options) {
  if (Status possible = check_geometry(shape); !possible.ok()) return possible;
  return Scheduler(shape, body, options).run();
}

// ---- what device text calls

void block_barrier(const Site& site) {
  Thread& me = current_thread();
  me.home->scheduler->block_barrier(me, site);
}

void grid_barrier(const Site& site) {
  Thread& me = current_thread();
  me.home->scheduler->grid_barrier(me, site);
}

void pause() {
  Thread& me = current_thread();
  me.home->scheduler->pause(me);
}

int lane() { return current_thread().lane(); }

std::uint64_t warp_meet(WarpOperation operation, unsigned mask, std::uint64_t value, int source,
                        const Site& site) {
  Thread& me = current_thread();
  return me.home->scheduler->warp_meet(me, operation, mask, value, source, site);
}

namespace {

void* shared_of(Block& block, const void* key, const char* name, std::size_t bytes) {
  if (void* object = block.shared.find(key)) return object;
  Scheduler& scheduler = *block.scheduler;
  void* object = block.shared.add(key, name, bytes);
  if (!object) {
    scheduler.fail(
        [&] { return "no memory for shared memory of " + std::to_string(bytes) + " bytes"; });
  }
  const std::size_t declared = block.shared.static_bytes();
  const std::size_t total = declared + scheduler.shape().shared_bytes;
  if (declared > kMaxStaticSharedBytes || total > kMaxSharedBytes) {
    const bool is_static = declared > kMaxStaticSharedBytes;
    scheduler.fail([&] {
      return std::string(is_static ? "static" : "static and dynamic") +
             " shared memory in bytes, with \"" + name + "\": expected at most " +
             std::to_string(is_static ? kMaxStaticSharedBytes : kMaxSharedBytes) + ", got " +
             std::to_string(is_static ? declared : total);
    });
  }
  return object;
}

template <class T>
T add_to(T* at, T value, const void* pc) {
  if (race_hooks.atomic) race_hooks.atomic(at, sizeof(T), pc);
  std::atomic_ref<T> cell(*at);
  return cell.fetch_add(value, std::memory_order_relaxed);
}

}  // namespace

void* shared_object(const void* key, const char* name, std::size_t bytes) {
  return shared_of(*current_thread().home, key, name, bytes);
}

void* dynamic_shared() {
  Block& block = *current_thread().home;
  return shared_of(block, &kDynamicShared, "dynamic", block.scheduler->shape().shared_bytes);
}

float atomic_add(float* at, float value) { return add_to(at, value, __builtin_return_address(0)); }
int atomic_add(int* at, int value) { return add_to(at, value, __builtin_return_address(0)); }
unsigned atomic_add(unsigned* at, unsigned value) {
  return add_to(at, value, __builtin_return_address(0));
}
unsigned long long atomic_add(unsigned long long* at, unsigned long long value) {
  return add_to(at, value, __builtin_return_address(0));
}

void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace rnntune::simt
