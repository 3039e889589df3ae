// SPDX-License-Identifier: Apache-2.0
// Where threads meet: barriers of a block, of the grid, and what the lanes of a warp do together.
#include <algorithm>
#include <bit>

#include "simt/scheduler.hpp"

namespace rnntune::simt {
namespace {

bool same(const Site& a, const Site& b) { return a.line == b.line && a.file == b.file; }

constexpr std::uint64_t kPoison = 0xcdcdcdcdcdcdcdcdu;

}  // namespace

void Scheduler::block_barrier(Thread& me, const Site& site) {
  Block& block = *me.home;
  me.site = site;
  me.state = State::at_block_barrier;
  if (++block.arrived == block.alive) {
    release_block(block, &me);
    yield(me);
  } else {
    suspend(me);
  }
}

// All threads that are left are at a barrier; `last` goes on by itself.
void Scheduler::release_block(Block& block, const Thread* last) {
  const Site* site = nullptr;
  for (const Thread& thread : block.threads) {
    if (thread.state != State::at_block_barrier) continue;
    if (!site) site = &thread.site;
    if (!same(*site, thread.site))
      fail([&] { return "divergent barrier: " + describe_threads(block); });
  }
  block.arrived = 0;
  ++block.interval;
  for (Thread& thread : block.threads) {
    if (thread.state != State::at_block_barrier) continue;
    if (&thread == last) {
      thread.state = State::ready;
    } else {
      queue(thread);
    }
  }
}

void Scheduler::grid_barrier(Thread& me, const Site& site) {
  me.site = site;
  if (!shape_.cooperative) {
    fail([&] {
      return "grid barrier at " + to_string(site) + " in a launch that is not cooperative";
    });
  }
  me.state = State::at_grid_barrier;
  ++at_grid_barrier_;
  release_grid_if_complete(&me);
  if (me.state == State::ready) {
    yield(me);
  } else {
    suspend(me);
  }
}

// A block takes part through its thread 0: on a GPU the others would wait for it for ever.
void Scheduler::release_grid_if_complete(const Thread* last) {
  if (at_grid_barrier_ == 0 || at_grid_barrier_ != alive_ || leader_exited_) return;
  const Site* site = nullptr;
  for (const Block& block : blocks_) {
    for (const Thread& thread : block.threads) {
      if (thread.state != State::at_grid_barrier) continue;
      if (!site) site = &thread.site;
      if (!same(*site, thread.site))
        fail([&] { return "divergent grid barrier: " + describe_threads(blocks_); });
    }
  }
  at_grid_barrier_ = 0;
  ++grid_interval_;
  for (Block& block : blocks_) {
    ++block.interval;
    for (Thread& thread : block.threads) {
      if (thread.state != State::at_grid_barrier) continue;
      if (&thread == last) {
        thread.state = State::ready;
      } else {
        queue(thread);
      }
    }
  }
}

std::uint64_t Scheduler::warp_meet(Thread& me, WarpOperation operation, unsigned mask,
                                   std::uint64_t value, int source, const Site& site) {
  Block& block = *me.home;
  Warp& warp = block.warp_of(me);
  const int lane = me.lane();
  me.site = site;
  me.operation = operation;
  me.mask = mask;
  if ((mask >> lane & 1) == 0) {
    fail([&] {
      return "thread " + std::to_string(me.id) + " calls " + to_string(site) +
             " with a mask that does not name its lane " + std::to_string(lane);
    });
  }
  warp.value[lane] = value;
  warp.source[lane] = source;
  warp.arrived |= 1u << lane;
  me.state = State::at_warp;
  if (release_warp_if_complete(block, warp, mask, &me)) {
    yield(me);
  } else {
    suspend(me);
  }
  return warp.result[lane];
}

// Whether the lanes of `mask` that are left have all come; then they go on.
bool Scheduler::release_warp_if_complete(Block& block, Warp& warp, unsigned mask,
                                         const Thread* last) {
  const unsigned group = mask & warp.alive;
  if ((warp.arrived & group) != group || group == 0) return false;
  const auto warp_number = static_cast<std::size_t>(&warp - block.warps.data());
  Thread* const lanes = &block.threads[warp_number * kWarpSize];
  const Thread& one = lanes[std::countr_zero(group)];
  for (int i = 0; i < kWarpSize; ++i) {
    if ((group >> i & 1) == 0) continue;
    if (lanes[i].mask != mask || lanes[i].operation != one.operation ||
        !same(lanes[i].site, one.site)) {
      fail([&] {
        return "lanes of a warp meet in different operations or with different masks: " +
               describe_threads(block);
      });
    }
  }
  std::uint64_t ballot = 0;
  for (int i = 0; i < kWarpSize; ++i) {
    if ((group >> i & 1) != 0 && warp.value[i] != 0) ballot |= std::uint64_t{1} << i;
  }
  for (int i = 0; i < kWarpSize; ++i) {
    if ((group >> i & 1) == 0) continue;
    const int source = warp.source[i] & (kWarpSize - 1);
    warp.result[i] = one.operation == WarpOperation::ballot ? ballot
                     : (group >> source & 1) != 0           ? warp.value[source]
                                                            : kPoison;
  }
  warp.arrived &= ~group;
  for (int i = 0; i < kWarpSize; ++i) {
    if ((group >> i & 1) == 0) continue;
    if (lanes[i].operation == WarpOperation::sync) ++lanes[i].warp_interval;
    if (&lanes[i] == last) {
      lanes[i].state = State::ready;
    } else {
      queue(lanes[i]);
    }
  }
  return true;
}

}  // namespace rnntune::simt
