// SPDX-License-Identifier: Apache-2.0
// A team of threads: one OpenMP region per library call, and a spin barrier of ours inside it,
// since a region costs about 3 us and a training step synchronises hundreds of times.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "cpu/barrier.hpp"

namespace rnntune::cpu {

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
