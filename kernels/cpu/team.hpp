// SPDX-License-Identifier: Apache-2.0
// A team of threads: one OpenMP region per library call, and a spin barrier of ours inside it,
// since a region costs about 3 us and a training step synchronises hundreds of times.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <thread>

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

// A barrier for `count` threads, any number of times. Every arrival takes a ticket; a thread may
// leave once all tickets of its round are out. The counter only grows, so nothing is reset and a
// fast thread that already is in the next round disturbs nobody. The increments are
// read-modify-writes with acquire and release, hence one release sequence: who reads the last
// ticket of the round sees everything that all threads wrote before they arrived.
class Barrier {
 public:
  // Spins that take some ten microseconds; after that the others are probably not running.
  static constexpr int kSpins = 2000;

  void wait(int count) {
    if (count == 1) return;
    const std::uint64_t ticket = arrived_.fetch_add(1, std::memory_order_acq_rel);
    const std::uint64_t n = std::uint64_t(count);
    const std::uint64_t round_end = (ticket / n + 1) * n;
    for (int spins = 0; arrived_.load(std::memory_order_acquire) < round_end; ++spins) {
      if (spins < kSpins) {
        spin_pause();
      } else {
        std::this_thread::yield();  // more threads than cores
      }
    }
  }

 private:
  alignas(128) std::atomic<std::uint64_t> arrived_{0};
  [[maybe_unused]] char pad_[128 - sizeof(std::atomic<std::uint64_t>)];
};

// One thread of a team.
struct Member {
  int id = 0;
  int count = 1;
  Barrier* barrier = nullptr;

  void wait() const { barrier->wait(count); }
};

// Runs body(member) on `threads` threads, or on as many as OpenMP gives: the body must go by
// member.count alone. One thread runs it in place, without a region. Body must not throw.
template <class Body>
void run_team(int threads, Body&& body) {
  assert(threads >= 1);
  Barrier barrier;
  if (threads == 1) {
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
