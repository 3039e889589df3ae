// SPDX-License-Identifier: Apache-2.0
// The barrier of a team of threads: spins for a while, then sleeps in the kernel.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
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

// A barrier for `count` threads, any number of times. The last to arrive starts the next round; the
// others spin on the word that holds the number of the round, and then sleep on it: with more
// threads than cores the missing one needs the core.
//
// Order: arrivals are read-modify-writes with acquire and release, so the last one has seen what
// all wrote before; its release of the word, and the acquire loads of the others, pass it on.
// Nobody can be in the next round before the word changes, so resetting the count first is safe.
//
// No wake-up is lost, since one word says both which round it is and whether somebody sleeps. All
// changes of one atomic have one order, whatever the order of other memory:
//   - either a sleeper's compare-and-swap, which adds the mark, comes before the exchange that
//     starts the next round. Then the exchange returns the mark, and its thread wakes. The kernel
//     compares the word and queues the sleeper under the lock that a wake-up takes: by then the
//     sleeper is in the queue, or it finds the word changed and does not sleep;
//   - or it comes after. Then it fails, since the number of the round differs, and nobody sleeps.
// (Two words, a round and a count of sleepers, need a full fence on both sides. std::atomic::wait
// of libstdc++ 12 is such a pair, lacks one behind a release store, and hung.)
class Barrier {
 public:
  static constexpr int kSpins = 1000;  // 10 to 40 us

  void wait(int count) {
    if (count == 1) return;
    const std::uint32_t round = round_.load(std::memory_order_relaxed) & ~kSleepers;
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
      arrived_.store(0, std::memory_order_relaxed);
      if (round_.exchange(round + kRound, std::memory_order_acq_rel) & kSleepers) wake_all();
      return;
    }
    for (int spins = 0; spins < kSpins; ++spins) {
      if ((round_.load(std::memory_order_acquire) & ~kSleepers) != round) return;
      spin_pause();
    }
    sleep(round);
  }

 private:
  static constexpr std::uint32_t kSleepers = 1;  // the mark
  static constexpr std::uint32_t kRound = 2;     // numbers of rounds are even, and wrap

  void sleep(std::uint32_t round) {
    for (;;) {
      std::uint32_t word = round;
      const bool marked =
          round_.compare_exchange_strong(word, round | kSleepers, std::memory_order_acquire);
      if (!marked && word != (round | kSleepers)) return;
      // Returns when woken, at once where the word has changed, and also for no reason.
      syscall(SYS_futex, &round_, FUTEX_WAIT_PRIVATE, round | kSleepers, nullptr, nullptr, 0);
    }
  }

  // The others may have left, and ended the barrier's life, since the word changed: the kernel goes
  // by the address and reads nothing there.
  void wake_all() { syscall(SYS_futex, &round_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

  static_assert(sizeof(std::atomic<std::uint32_t>) == 4 &&
                std::atomic<std::uint32_t>::is_always_lock_free);
  alignas(128) std::atomic<int> arrived_{0};
  alignas(128) std::atomic<std::uint32_t> round_{0};
};

}  // namespace rnntune::cpu
