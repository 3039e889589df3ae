// SPDX-License-Identifier: Apache-2.0
// A team of threads: one OpenMP region per library call, and a spin barrier of ours inside it,
// since a region costs about 3 us and a training step synchronises hundreds of times.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace rnntune::cpu {

inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// A barrier for `count` threads, any number of times. The last to arrive starts the next round by
// raising the number of the round, on which the others spin for a while and then sleep: with more
// threads than cores the missing one needs the core. Arrivals are read-modify-writes with acquire
// and release, so the last one has seen what all wrote before; its release store of the round, and
// the acquire loads of the others, pass it on. Nobody can be in the next round before the round is
// raised, so resetting the count before that is safe.
class Barrier {
 public:
  static constexpr int kSpins = 1000;  // 10 to 40 us

  void wait(int count) {
    if (count == 1) return;
    const std::uint32_t round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      round_.notify_all();
      return;
    }
    for (int spins = 0; spins < kSpins; ++spins) {
      if (round_.load(std::memory_order_acquire) != round) return;
      spin_pause();
    }
    round_.wait(round, std::memory_order_acquire);
  }

 private:
  alignas(128) std::atomic<int> arrived_{0};
  alignas(128) std::atomic<std::uint32_t> round_{0};
};

// One thread of a team.
struct Member {
  int id = 0;
  int count = 1;
  Barrier* barrier = nullptr;

  void wait() const { barrier->wait(count); }
};

// Holds the regions that the calling thread opens next, and with them a BLAS on OpenMP, to a number
// of threads.
class ThreadLimit {
 public:
  explicit ThreadLimit(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~ThreadLimit() { omp_set_num_threads(before_); }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

// Runs body(member) on `threads` threads, or on as many as OpenMP gives: the body must go by
// member.count alone. One thread runs it in place, without a region, and what it calls stays on
// that thread. Body must not throw.
template <class Body>
void run_team(int threads, Body&& body) {
  assert(threads >= 1);
  Barrier barrier;
  if (threads == 1) {
    const ThreadLimit limit(1);
    body(Member{0, 1, &barrier});
    return;
  }
#pragma omp parallel num_threads(threads)
  body(Member{omp_get_thread_num(), omp_get_num_threads(), &barrier});
}

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
};

// Part `id` of [0, n) in `parts` parts that differ by at most one grain; inner bounds are multiples
// of the grain.
inline Range split(std::int64_t n, int parts, int id, std::int64_t grain = 1) {
  const std::int64_t grains = (n + grain - 1) / grain;
  const std::int64_t each = grains / parts, more = grains % parts;
  const auto bound = [&](std::int64_t i) {
    return std::min(n, (each * i + std::min(i, more)) * grain);
  };
  return {bound(id), bound(id + 1)};
}

}  // namespace rnntune::cpu
