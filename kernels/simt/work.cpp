// SPDX-License-Identifier: Apache-2.0
#include "simt/work.hpp"

#include <algorithm>
#include <utility>

#include "simt/random.hpp"

namespace rnntune::simt {

WorkPtr WorkQueue::add(Task task, std::span<const WorkPtr> after) {
  const auto work = std::make_shared<Work>();
  static_cast<Task&>(*work) = std::move(task);
  work->number = ++number_;
  for (const WorkPtr& before : after) {
    if (before->done) continue;
    before->next.push_back(work);
    ++work->waits;
  }
  ++size_;
  if (work->waits == 0) ready_.push_back(work);
  return work;
}

void WorkQueue::run_down_to(std::size_t size) {
  while (size_ > size) run_one();
}

void WorkQueue::run_until_done(const Work& work) {
  while (!work.done) run_one();
}

// What waits can only wait for earlier work: while there is any, some is ready. A random order
// mostly stays with what became ready last, so that one stream gets far ahead of the others.
void WorkQueue::run_one() {
  constexpr std::uint64_t kStay = 4;
  auto chosen = ready_.end() - 1;
  if (seed_ == 0) {
    chosen = std::min_element(ready_.begin(), ready_.end(),
                              [](const auto& a, const auto& b) { return a->number < b->number; });
  } else if (random(kStay) == 0) {
    chosen = ready_.begin() + static_cast<std::ptrdiff_t>(random(ready_.size()));
  }
  const WorkPtr work = std::move(*chosen);
  ready_.erase(chosen);
  Status status;
  if (work->run) status = work->run();
  finish(*work);
  if (!status.ok()) set_fault({status.error().code, work->what + ": " + status.error().message});
}

void WorkQueue::finish(Work& work) {
  work.done = true;
  work.ended = std::chrono::steady_clock::now();
  work.run = nullptr;
  for (WorkPtr& next : std::exchange(work.next, {})) {
    if (--next->waits == 0) ready_.push_back(std::move(next));
  }
  --size_;
}

void WorkQueue::drop() {
  while (!ready_.empty()) {
    const WorkPtr work = std::move(ready_.back());
    ready_.pop_back();
    finish(*work);
  }
}

Status WorkQueue::take_fault() { return std::exchange(fault_, {}); }

void WorkQueue::set_fault(Error error) {
  if (fault_.ok()) fault_ = std::move(error);
  drop();
}

std::uint64_t WorkQueue::next_seed() { return seed_ == 0 ? 0 : 1 + random(~std::uint64_t{0}); }

std::uint64_t WorkQueue::random(std::uint64_t below) { return random_below(state_, below); }

}  // namespace rnntune::simt
