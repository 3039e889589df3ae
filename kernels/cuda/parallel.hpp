// SPDX-License-Identifier: Apache-2.0
// Work of seconds on a few threads of its own. OpenMP's are not asked: the compiler blocks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace rnntune::cuda {

// 0: every core there is.
inline int thread_count(int asked) {
  return asked > 0 ? asked : int(std::max(1u, std::thread::hardware_concurrency()));
}

// Calls body(i) for i in [0, count) in order of beginning, `threads` at once; no more begin after
// one returned false. The caller's thread takes part, so that it works where no other can start.
template <class Body>
void in_parallel(std::size_t count, int threads, const Body& body) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stopped{false};
  const auto work = [&] {
    while (!stopped) {
      const std::size_t i = next++;
      if (i >= count) return;
      if (!body(i)) stopped = true;
    }
  };
  std::vector<std::thread> team;
  try {
    for (std::size_t i = 1; i < std::min(count, std::size_t(threads)); ++i) team.emplace_back(work);
  } catch (const std::system_error&) {
  }
  work();
  for (std::thread& thread : team) thread.join();
}

}  // namespace rnntune::cuda
