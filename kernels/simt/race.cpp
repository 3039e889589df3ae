// SPDX-License-Identifier: Apache-2.0
// The runtime that a compiler's -fsanitize=thread calls, for every access of an instrumented
// translation unit. This one is compiled without it.
#include "simt/race.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "simt/profile.hpp"
#include "simt/scheduler.hpp"
#include "simt/shadow.hpp"
#include "simt/source_line.hpp"

namespace rnntune::simt {
namespace {

struct Checker {
  std::uint64_t launch = 0;
  Shadow shadow;
  std::set<std::pair<const void*, const void*>> reported;

  static Checker& of(const Scheduler& scheduler) {
    static thread_local Checker checker;
    if (checker.launch != scheduler.number()) {
      checker.launch = scheduler.number();
      checker.shadow.clear();
      checker.reported.clear();
    }
    return checker;
  }
};

const char* name_of(Access access) {
  constexpr const char* kNames[] = {"read", "write", "atomic access"};
  return kNames[static_cast<int>(access)];
}

std::string describe(const Record& record) {
  return std::string(name_of(record.access)) + " by thread " + std::to_string(record.thread) +
         " of block " + std::to_string(record.block) + " at " + source_line(record.pc);
}

// Ends the launch where the thread may not touch this memory. The frames of the fiber hold nothing
// then that must be destroyed.
void check_memory(const Thread& me, const void* at, std::size_t bytes, Access kind,
                  const void* pc) {
  Scheduler& scheduler = *me.home->scheduler;
  const auto& why_not = scheduler.options().why_not_memory;
  if (!why_not || me.home->shared.holds(at, bytes) || why_not(at, bytes).empty()) return;
  if (kind == Access::read && is_constant(at)) return;
  scheduler.fail([&] {
    Record record;
    record.pc = pc;
    record.block = me.home->id;
    record.thread = me.id;
    record.access = kind;
    return describe(record) + " of " + std::to_string(bytes) + " bytes: " + why_not(at, bytes);
  });
}

void access(const void* at, std::size_t bytes, Access kind, const void* pc) {
  if (!current) return;  // the host's own
  Thread& me = current_thread();
  if (me.fiber->holds(at)) return;  // a thread's own variables
  Scheduler& scheduler = *me.home->scheduler;
  check_memory(me, at, bytes, kind, pc);
  if (Profile* profile = scheduler.options().profile) {
    profile->add(me, at, bytes, kind, me.home->shared.holds(at, bytes), pc);
    return;
  }
  Checker& checker = Checker::of(scheduler);
  Record now{pc, me.home->id, me.id, me.home->interval, scheduler.grid_interval(), me.warp_interval,
             0,  kind};
  const auto begin = reinterpret_cast<std::uintptr_t>(at), end = begin + bytes;
  for (std::uintptr_t granule = begin / Shadow::kGranule; granule * Shadow::kGranule < end;
       ++granule) {
    const std::uintptr_t base = granule * Shadow::kGranule;
    const std::uintptr_t from = std::max(begin, base) - base;
    const std::uintptr_t to = std::min(end, base + Shadow::kGranule) - base;
    now.bytes = static_cast<std::uint8_t>((0xffu << from) & (0xffu >> (Shadow::kGranule - to)));
    const Record* race = checker.shadow.add(granule, now);
    if (!race || !checker.reported.emplace(race->pc, pc).second) continue;
    scheduler.report("race: " + describe(now) + " after " + describe(*race) +
                     ", and nothing between them that orders the two");
  }
}

void forget(const void* memory, std::size_t bytes) {
  if (!current) return;
  Checker::of(*current_thread().home->scheduler)
      .shadow.forget(reinterpret_cast<std::uintptr_t>(memory), bytes);
}

void atomic(const void* at, std::size_t bytes, const void* pc) {
  access(at, bytes, Access::atomic, pc);
}

[[maybe_unused]] const bool registered = [] {
  race_hooks = {forget, atomic};
  return true;
}();

}  // namespace
}  // namespace rnntune::simt

using rnntune::simt::Access;
using rnntune::simt::access;

#define RNNTUNE_PC __builtin_return_address(0)
#define RNNTUNE_ACCESSES(bytes)                                                                  \
  void __tsan_read##bytes(void* at) { access(at, bytes, Access::read, RNNTUNE_PC); }             \
  void __tsan_write##bytes(void* at) { access(at, bytes, Access::write, RNNTUNE_PC); }           \
  void __tsan_unaligned_read##bytes(void* at) { access(at, bytes, Access::read, RNNTUNE_PC); }   \
  void __tsan_unaligned_write##bytes(void* at) { access(at, bytes, Access::write, RNNTUNE_PC); } \
  void __tsan_volatile_read##bytes(void* at) { access(at, bytes, Access::read, RNNTUNE_PC); }    \
  void __tsan_volatile_write##bytes(void* at) { access(at, bytes, Access::write, RNNTUNE_PC); }
// The host's part of an instrumented file may use atomics, as may its static variables.
#define RNNTUNE_ATOMICS(bits, T)                                                                 \
  T __tsan_atomic##bits##_load(const volatile T* at, int) { return __atomic_load_n(at, 5); }     \
  void __tsan_atomic##bits##_store(volatile T* at, T value, int) {                               \
    __atomic_store_n(at, value, 5);                                                              \
  }                                                                                              \
  T __tsan_atomic##bits##_exchange(volatile T* at, T value, int) {                               \
    return __atomic_exchange_n(at, value, 5);                                                    \
  }                                                                                              \
  T __tsan_atomic##bits##_fetch_add(volatile T* at, T value, int) {                              \
    return __atomic_fetch_add(at, value, 5);                                                     \
  }                                                                                              \
  T __tsan_atomic##bits##_fetch_sub(volatile T* at, T value, int) {                              \
    return __atomic_fetch_sub(at, value, 5);                                                     \
  }                                                                                              \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* at, T* old, T value, int, int) { \
    return __atomic_compare_exchange_n(at, old, value, 0, 5, 5);                                 \
  }                                                                                              \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* at, T* old, T value, int, int) {   \
    return __atomic_compare_exchange_n(at, old, value, 0, 5, 5);                                 \
  }

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

RNNTUNE_ACCESSES(1)
RNNTUNE_ACCESSES(2)
RNNTUNE_ACCESSES(4)
RNNTUNE_ACCESSES(8)
RNNTUNE_ACCESSES(16)

void __tsan_read_range(void* at, unsigned long bytes) {
  access(at, bytes, Access::read, RNNTUNE_PC);
}
void __tsan_write_range(void* at, unsigned long bytes) {
  access(at, bytes, Access::write, RNNTUNE_PC);
}
void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  access(from, bytes, Access::read, RNNTUNE_PC);
  access(to, bytes, Access::write, RNNTUNE_PC);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
  access(from, bytes, Access::read, RNNTUNE_PC);
  access(to, bytes, Access::write, RNNTUNE_PC);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, unsigned long bytes) {
  access(to, bytes, Access::write, RNNTUNE_PC);
  return std::memset(to, value, bytes);
}

RNNTUNE_ATOMICS(8, unsigned char)
RNNTUNE_ATOMICS(16, unsigned short)
RNNTUNE_ATOMICS(32, unsigned)
RNNTUNE_ATOMICS(64, unsigned long)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(5); }
void __tsan_atomic_signal_fence(int) {}

}  // extern "C"
