// SPDX-License-Identifier: Apache-2.0
// Threads meet at the barrier of the CPU back end after random delays around its sleeping
// threshold: where a wake-up can be lost, this gets stuck, in seconds or minutes.
//   barrier_stress SECONDS THREADS [SEED]
// Prints the rounds that passed; exits 1 when none passed for ten seconds, or when a thread left
// before all had arrived.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "kernels/cpu/barrier.hpp"

namespace {

using rnntune::cpu::Barrier;
using Clock = std::chrono::steady_clock;

constexpr int kStuckSeconds = 10;

// In pauses. Waiting threads spin for kSpins of them: one that comes then finds them spinning,
// asleep or on the way, which is what loses a wake-up. Half of the time a thread is not late.
template <class Random>
int delay(Random& random) {
  constexpr unsigned kSpread = Barrier::kSpins / 2;
  return random() % 2 ? 0 : Barrier::kSpins * 3 / 4 + static_cast<int>(random() / 2 % kSpread);
}

struct Meeting {
  Barrier barrier;
  std::atomic<bool> stop{false}, late{false};
  std::atomic<long> arrived[64] = {};  // rounds that a thread has come to

  void thread(int id, int count, unsigned seed) {
    std::minstd_rand random(seed + static_cast<unsigned>(id) * 7919u);
    for (long round = 1;; ++round) {
      for (int i = delay(random); i > 0; --i) rnntune::cpu::spin_pause();
      // Thread 0 alone decides, before a barrier, so that all stop in the same round.
      const bool last = id == 0 && stop;
      arrived[id].store(last ? -round : round, std::memory_order_relaxed);
      barrier.wait(count);
      for (int other = 0; other < count; ++other)
        if (std::abs(arrived[other].load(std::memory_order_relaxed)) < round) late = true;
      const bool stopping = arrived[0].load(std::memory_order_relaxed) == -round;
      barrier.wait(count);
      if (stopping) return;
    }
  }
};

int stress(double seconds, int count, unsigned seed) {
  static Meeting meeting;  // stuck threads outlive this function
  std::vector<std::thread> threads;
  for (int id = 0; id < count; ++id) threads.emplace_back([=] { meeting.thread(id, count, seed); });
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  auto moved = Clock::now();
  for (long last = 0; Clock::now() < end;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const long now = meeting.arrived[0];
    if (now != last) moved = Clock::now();
    last = now;
    if (Clock::now() - moved > std::chrono::seconds(kStuckSeconds)) {
      std::printf("STUCK: %d threads, seed %u, no round for %d s after %ld rounds\n", count, seed,
                  kStuckSeconds, now);
      std::fflush(stdout);
      std::_Exit(1);
    }
  }
  meeting.stop = true;
  for (std::thread& thread : threads) thread.join();  // the test's own time limit watches over this
  const long rounds = std::abs(meeting.arrived[0].load());
  std::printf("%s: %d threads, seed %u, %ld rounds\n", meeting.late ? "LATE" : "ok", count, seed,
              rounds);
  return meeting.late || rounds < 2 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 0;
  if (!(seconds > 0) || threads < 2 || threads > 64) {
    std::puts("usage: barrier_stress SECONDS THREADS(2..64) [SEED]");
    return 2;
  }
  const unsigned seed =
      argc > 3 ? static_cast<unsigned>(std::atol(argv[3])) : std::random_device()();
  return stress(seconds, threads, seed);
}
