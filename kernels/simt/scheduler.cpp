// SPDX-License-Identifier: Apache-2.0
#include "simt/scheduler.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdlib>

#include "simt/random.hpp"

namespace rnntune::simt {
namespace {

constexpr std::size_t kMaxFindings = 8;

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> launches{0};
  return launches.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

constinit thread_local Indices* current = nullptr;

FiberPool& FiberPool::mine() {
  static thread_local FiberPool pool;
  return pool;
}

FiberPool::~FiberPool() {
  for (Fiber* fiber : all_) destroy_fiber(fiber);
}

Fiber* FiberPool::take() {
  if (free_.empty()) {
    Fiber* fiber = create_fiber();
    if (fiber) all_.push_back(fiber);
    return fiber;
  }
  Fiber* fiber = free_.back();
  free_.pop_back();
  return fiber;
}

Scheduler::Scheduler(const gpu::LaunchShape& shape, const std::function<void()>& body,
                     const LaunchOptions& options)
    : shape_(shape),
      body_(body),
      options_(options),
      seed_(options.seed),
      random_order_(options.seed != 0),
      number_(next_number()),
      grid_blocks_(std::uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z),
      block_threads_(static_cast<int>(shape.block.x * shape.block.y * shape.block.z)) {
  blocks_ = std::vector<Block>(shape.cooperative ? grid_blocks_ : 1);
  ready_.resize(std::bit_ceil(blocks_.size() * static_cast<std::size_t>(block_threads_)));
}

Status Scheduler::run() {
  Indices* const outside = current;
  // Blocks go in order, or from a random one on in steps that meet each once.
  std::uint64_t at = 0, step = 1;
  if (random_order_ && !shape_.cooperative) {
    at = random(grid_blocks_);
    step = grid_blocks_ > 2 && random(2) != 0 ? grid_blocks_ - 1 : 1;
  }
  const std::uint64_t waves = shape_.cooperative ? 1 : grid_blocks_;
  for (std::uint64_t wave = 0; wave < waves && error_.empty(); ++wave) {
    if (shape_.cooperative || !options_.runs_block || options_.runs_block(at)) run_wave(at);
    at = (at + step) % grid_blocks_;
  }
  current = outside;
  if (!error_.empty()) {
    FiberPool::mine().take_back_all();
    return Error{ErrorCode::internal, error_};
  }
  if (finding_count_ == 0) return {};
  std::string message;
  for (const std::string& finding : findings_) message += (message.empty() ? "" : "\n") + finding;
  if (finding_count_ > findings_.size()) {
    message += "\nand " + std::to_string(finding_count_ - findings_.size()) + " more";
  }
  return Error{ErrorCode::internal, message};
}

void Scheduler::set_up(Block& block, std::uint64_t id) {
  const gpu::Extent3 grid = shape_.grid, dim = shape_.block;
  const gpu::Extent3 index{static_cast<unsigned>(id % grid.x),
                           static_cast<unsigned>(id / grid.x % grid.y),
                           static_cast<unsigned>(id / grid.x / grid.y)};
  const auto count = static_cast<std::size_t>(block_threads_);
  block.scheduler = this;
  block.id = id;
  block.alive = block_threads_;
  block.arrived = 0;
  block.interval = 0;
  block.threads.resize(count);
  block.warps.resize((count + kWarpSize - 1) / kWarpSize);
  block.shared.begin();
  for (std::size_t w = 0; w < block.warps.size(); ++w) {
    const std::size_t lanes = std::min<std::size_t>(kWarpSize, count - w * kWarpSize);
    block.warps[w].alive = ~0u >> (kWarpSize - lanes);
    block.warps[w].arrived = 0;
  }
  gpu::Extent3 thread{0, 0, 0};
  for (std::size_t i = 0; i < count; ++i) {
    Thread& one = block.threads[i];
    one.thread = thread;
    one.block = index;
    one.block_dim = dim;
    one.grid_dim = grid;
    one.home = &block;
    one.fiber = nullptr;
    one.id = static_cast<int>(i);
    one.warp_interval = 0;
    queue(one);
    if (++thread.x == dim.x) {
      thread.x = 0;
      if (++thread.y == dim.y) thread.y = 0, ++thread.z;
    }
  }
}

void Scheduler::run_wave(std::uint64_t first) {
  ready_first_ = ready_count_ = 0;
  alive_ = blocks_.size() * static_cast<std::size_t>(block_threads_);
  for (std::size_t b = 0; b < blocks_.size(); ++b) set_up(blocks_[b], first + b);
  go_to(main_, *take_ready());
  if (!error_.empty()) return;
  for (const Block& block : blocks_) {
    const std::string overrun = block.shared.overrun();
    if (!overrun.empty()) report(overrun + " in " + describe_block(block));
  }
}

// ---- fibers

// Where a fiber begins. It serves one thread after the other: threads that meet nobody need one
// fiber for all of them.
void Scheduler::enter() {
  entered();
  current_thread().home->scheduler->live_on_fiber();
}

void Scheduler::live_on_fiber() {
  for (;;) {
    body_();
    Thread& me = current_thread();
    Fiber* const fiber = me.fiber;
    Thread* const next = end_thread(me);
    me.fiber = nullptr;
    if (next && !next->fiber) {
      next->fiber = fiber;
      current = next;
      continue;
    }
    FiberPool::mine().give(fiber);
    current = next;
    switch_context(fiber->context, next ? next->fiber->context : main_, true);
    std::abort();  // nobody switches to an ended flow
  }
}

// The thread to go on with; null at the end of the wave.
Thread* Scheduler::end_thread(Thread& me) {
  Block& block = *me.home;
  Warp& warp = block.warp_of(me);
  me.state = State::exited;
  warp.alive &= ~(1u << me.lane());
  if (me.id == 0) leader_exited_ = true;
  --alive_;
  --block.alive;
  // Who waits no longer waits for this one. A group of lanes goes at a time: each has its own mask.
  if (warp.arrived != 0) {
    const auto base = static_cast<std::size_t>(me.id - me.lane());
    for (unsigned left = warp.arrived; left != 0;) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(left));
      const unsigned mask = block.threads[base + lane].mask;
      left &= ~mask;
      release_warp_if_complete(block, warp, mask, nullptr);
    }
  }
  if (block.alive != 0 && block.arrived == block.alive) release_block(block, nullptr);
  release_grid_if_complete(nullptr);
  if (alive_ == 0) return nullptr;
  Thread* next = take_ready();
  if (!next) fail([&] { return "deadlock: " + describe_threads(blocks_); });
  return next;
}

void Scheduler::go_to(Context& from, Thread& next) {
  current = &next;
  if (!next.fiber) {
    next.fiber = FiberPool::mine().take();
    if (!next.fiber) {
      error_ = "no memory for the stack of a thread";
      current = nullptr;
      if (&from != &main_) switch_context(from, main_);
      return;
    }
    prepare(*next.fiber, &Scheduler::enter);
  }
  switch_context(from, next.fiber->context);
}

void Scheduler::abandon() {
  Thread& me = current_thread();
  current = nullptr;
  switch_context(me.fiber->context, main_);
  std::abort();  // a launch that failed is not resumed
}

void Scheduler::report(std::string finding) {
  if (++finding_count_ <= kMaxFindings) findings_.push_back(std::move(finding));
}

// ---- who runs next

std::uint64_t Scheduler::random(std::uint64_t below) { return random_below(seed_, below); }

void Scheduler::queue(Thread& thread) {
  assert(ready_count_ < ready_.size());
  thread.state = State::ready;
  ready_[(ready_first_ + ready_count_++) & (ready_.size() - 1)] = &thread;
}

Thread* Scheduler::take_ready() {
  if (ready_count_ == 0) return nullptr;
  const std::size_t mask = ready_.size() - 1;
  Thread*& first = ready_[ready_first_ & mask];
  if (random_order_) std::swap(first, ready_[(ready_first_ + random(ready_count_)) & mask]);
  ++ready_first_;
  --ready_count_;
  return first;
}

// The thread waits, or is queued: others run until it is its turn.
void Scheduler::suspend(Thread& me) {
  Thread* next = take_ready();
  if (!next) fail([&] { return "deadlock: " + describe_threads(blocks_); });
  if (next != &me) go_to(me.fiber->context, *next);
}

void Scheduler::pause(Thread& me) {
  queue(me);
  suspend(me);
}

// After what let others go on: in a random order they may be the first to.
void Scheduler::yield(Thread& me) {
  if (random_order_) pause(me);
}

}  // namespace rnntune::simt
