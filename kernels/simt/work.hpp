// SPDX-License-Identifier: Apache-2.0
// Queued work and the order it runs in: whatever waits for nothing may be next.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rnntune/result.hpp"

namespace rnntune::simt {

struct Task {
  std::string what;             // "fill of 64 bytes"; begins the message when it fails
  std::function<Status()> run;  // empty: nothing to do but to be waited for
};

struct Work : Task {
  std::uint64_t number = 0;                 // in the order of the calls
  std::size_t waits = 0;                    // for so many that are not done
  std::vector<std::shared_ptr<Work>> next;  // that wait for this
  bool done = false;
  std::chrono::steady_clock::time_point ended;
};
using WorkPtr = std::shared_ptr<Work>;

class WorkQueue {
 public:
  // 0: work runs in the order of the calls. Else in a random one of those allowed.
  explicit WorkQueue(std::uint64_t seed) : seed_(seed), state_(seed) {}
  WorkQueue(const WorkQueue&) = delete;
  ~WorkQueue() { drop(); }

  WorkPtr add(Task task, std::span<const WorkPtr> after);
  std::size_t size() const { return size_; }

  // Runs what has its turn: until at most `size` are left, or `work` is done.
  void run_down_to(std::size_t size);
  void run_until_done(const Work& work);

  // The first failure of queued work since the last call. The rest of what was queued then is
  // dropped.
  Status take_fault();
  void set_fault(Error error);

  // Of a launch's threads; 0 where everything goes in order.
  std::uint64_t next_seed();

 private:
  void run_one();
  void finish(Work& work);
  void drop();
  std::uint64_t random(std::uint64_t below);

  const std::uint64_t seed_;
  std::uint64_t state_;  // of the random numbers
  std::uint64_t number_ = 0;
  std::size_t size_ = 0;
  std::vector<WorkPtr> ready_;
  Status fault_;
};

}  // namespace rnntune::simt
