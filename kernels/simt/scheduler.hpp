// SPDX-License-Identifier: Apache-2.0
// The inside of a launch: its blocks, warps and threads, and who runs next.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simt/context.hpp"
#include "simt/launch.hpp"
#include "simt/shared_memory.hpp"
#include "simt/thread.hpp"

namespace rnntune::simt {

class Scheduler;
struct Block;

enum class State : std::uint8_t { ready, at_block_barrier, at_grid_barrier, at_warp, exited };

inline constexpr int kWarpSize = 32;

struct Warp {
  unsigned alive = 0;    // lanes that exist and have not exited
  unsigned arrived = 0;  // lanes that wait in warp_meet
  std::uint64_t value[kWarpSize];
  std::uint64_t result[kWarpSize];
  int source[kWarpSize];
};

struct Thread : Indices {
  Block* home = nullptr;
  Fiber* fiber = nullptr;  // null before it starts and after it ends
  int id = 0;              // in its block
  State state = State::ready;
  WarpOperation operation = WarpOperation::sync;
  unsigned mask = 0;
  unsigned warp_interval = 0;  // number of __syncwarp it has passed
  Site site;

  int lane() const { return id % kWarpSize; }
};

struct Block {
  Scheduler* scheduler = nullptr;
  std::uint64_t id = 0;  // in the grid
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  SharedMemory shared;
  int alive = 0;
  int arrived = 0;        // at the block's barrier
  unsigned interval = 0;  // number of barriers of block or grid it has passed

  Warp& warp_of(const Thread& thread) {
    return warps[static_cast<std::size_t>(thread.id / kWarpSize)];
  }
};

inline Thread& current_thread() { return *static_cast<Thread*>(current); }

// Fibers of an OS thread, kept from launch to launch.
class FiberPool {
 public:
  static FiberPool& mine();
  ~FiberPool();

  Fiber* take();  // null when there is no memory
  void give(Fiber* fiber) { free_.push_back(fiber); }
  void take_back_all() { free_ = all_; }

 private:
  std::vector<Fiber*> all_, free_;
};

class Scheduler {
 public:
  Scheduler(const gpu::LaunchShape& shape, const std::function<void()>& body,
            const LaunchOptions& options);

  Status run();

  void block_barrier(Thread& me, const Site& site);
  void grid_barrier(Thread& me, const Site& site);
  std::uint64_t warp_meet(Thread& me, WarpOperation operation, unsigned mask, std::uint64_t value,
                          int source, const Site& site);
  void pause(Thread& me);

  // Ends the launch with the error that describe() returns; called on a fiber. A function, since no
  // frame of the fiber is ever unwound: what it makes beside the text is destroyed before that.
  template <class Describe>
  [[noreturn]] void fail(Describe describe) {
    error_ = describe();
    abandon();
  }
  // A finding that does not end the launch but makes it fail.
  void report(std::string finding);

  const gpu::LaunchShape& shape() const { return shape_; }
  const LaunchOptions& options() const { return options_; }
  std::uint64_t number() const { return number_; }  // of the launch in this process
  unsigned grid_interval() const { return grid_interval_; }
  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  static void enter();
  [[noreturn]] void abandon();
  void live_on_fiber();
  Thread* end_thread(Thread& me);
  void run_wave(std::uint64_t first);
  void set_up(Block& block, std::uint64_t id);

  void queue(Thread& thread);
  Thread* take_ready();
  void suspend(Thread& me);
  void yield(Thread& me);
  void go_to(Context& from, Thread& next);
  std::uint64_t random(std::uint64_t below);

  void release_block(Block& block, const Thread* last);
  void release_grid_if_complete(const Thread* last);
  bool release_warp_if_complete(Block& block, Warp& warp, unsigned mask, const Thread* last);

  const gpu::LaunchShape& shape_;
  const std::function<void()>& body_;
  const LaunchOptions& options_;
  std::uint64_t seed_;  // and state of the random numbers
  bool random_order_;
  std::uint64_t number_;
  std::uint64_t grid_blocks_;
  int block_threads_;

  std::vector<Block> blocks_;   // that run together
  std::vector<Thread*> ready_;  // a ring of 2^n places
  std::size_t ready_first_ = 0, ready_count_ = 0;
  std::size_t alive_ = 0, at_grid_barrier_ = 0;
  bool leader_exited_ = false;  // thread 0 of a block, without which no grid barrier completes
  unsigned grid_interval_ = 0;
  Context main_;
  std::string error_;
  std::vector<std::string> findings_;
  std::size_t finding_count_ = 0;
};

// What the threads of the blocks are waiting for, with their numbers and lines.
std::string describe_threads(const std::vector<Block>& blocks);
std::string describe_threads(const Block& block);
std::string describe_block(const Block& block);
std::string to_string(const Site& site);

}  // namespace rnntune::simt
