// SPDX-License-Identifier: Apache-2.0
// Who waits where, in words.
#include <algorithm>
#include <cstring>

#include "simt/scheduler.hpp"

namespace rnntune::simt {
namespace {

constexpr std::size_t kMaxRanges = 4, kMaxBlocks = 4;

struct Group {
  std::string what;
  std::vector<std::pair<int, int>> ranges;  // of thread numbers, both ends included
};

std::string what_of(const Thread& thread) {
  switch (thread.state) {
    case State::ready:
      return "ready";
    case State::exited:
      return "exited";
    default:
      return "at " + to_string(thread.site);
  }
}

std::string to_string(const Group& group) {
  const bool one = group.ranges.size() == 1 && group.ranges[0].first == group.ranges[0].second;
  std::string text = one ? "thread " : "threads ";
  for (std::size_t i = 0; i < std::min(group.ranges.size(), kMaxRanges); ++i) {
    const auto [first, last] = group.ranges[i];
    text += (i ? ", " : "") + std::to_string(first);
    if (last != first) text += "-" + std::to_string(last);
  }
  if (group.ranges.size() > kMaxRanges) text += ", ...";
  return text + " " + group.what;
}

}  // namespace

std::string to_string(const Site& site) {
  const char* slash = std::strrchr(site.file, '/');
  return std::string(site.operation) + " " + (slash ? slash + 1 : site.file) + ":" +
         std::to_string(site.line);
}

std::string describe_block(const Block& block) {
  const gpu::Extent3& index = block.threads[0].block;
  return "block (" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " +
         std::to_string(index.z) + ")";
}

std::string describe_threads(const Block& block) {
  std::vector<Group> groups;
  for (const Thread& thread : block.threads) {
    const std::string what = what_of(thread);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& other) { return other.what == what; });
    if (group == groups.end()) group = groups.insert(groups.end(), {what, {}});
    if (!group->ranges.empty() && group->ranges.back().second == thread.id - 1) {
      group->ranges.back().second = thread.id;
    } else {
      group->ranges.emplace_back(thread.id, thread.id);
    }
  }
  std::string text = describe_block(block) + ": ";
  for (const Group& group : groups) text += (&group == &groups[0] ? "" : "; ") + to_string(group);
  return text;
}

std::string describe_threads(const std::vector<Block>& blocks) {
  std::string text;
  for (std::size_t i = 0; i < std::min(blocks.size(), kMaxBlocks); ++i) {
    text += (i ? "; " : "") + describe_threads(blocks[i]);
  }
  if (blocks.size() > kMaxBlocks) {
    text += "; and " + std::to_string(blocks.size() - kMaxBlocks) + " more blocks";
  }
  return text;
}

}  // namespace rnntune::simt
