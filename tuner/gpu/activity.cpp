// SPDX-License-Identifier: Apache-2.0
#include "tuner/gpu/activity.hpp"

#include <algorithm>

namespace rnntune::tuner {
namespace {

double us(std::uint64_t ns) { return static_cast<double>(ns) * 1e-3; }

// Sums of the activities that `name` calls alike, in the order in which they first come.
template <class Name>
std::vector<Share> shares(const Activities& activities, Name name) {
  std::vector<Share> sums;
  for (const Activity& activity : activities) {
    const auto found = std::find_if(
        sums.begin(), sums.end(), [&](const Share& share) { return share.name == name(activity); });
    Share& share = found == sums.end() ? sums.emplace_back(Share{name(activity)}) : *found;
    ++share.count;
    share.total_us += us(activity.end_ns - activity.start_ns);
  }
  return sums;
}

}  // namespace

double span_us(const Activities& activities) {
  if (activities.empty()) return 0;
  std::uint64_t end = 0;
  for (const Activity& activity : activities) end = std::max(end, activity.end_ns);
  return us(end - activities.front().start_ns);
}

double busy_us(const Activities& activities) {
  std::uint64_t busy = 0, until = 0;
  for (const Activity& activity : activities) {
    const std::uint64_t from = std::max(activity.start_ns, until);
    if (activity.end_ns <= from) continue;
    busy += activity.end_ns - from;
    until = activity.end_ns;
  }
  return us(busy);
}

std::vector<Share> by_kernel(const Activities& activities) {
  auto sums = shares(activities, [](const Activity& activity) { return activity.name; });
  std::stable_sort(sums.begin(), sums.end(),
                   [](const Share& a, const Share& b) { return a.total_us > b.total_us; });
  return sums;
}

std::vector<Share> by_phase(const Activities& activities) {
  return shares(activities, [](const Activity& activity) { return activity.phase; });
}

}  // namespace rnntune::tuner
