// SPDX-License-Identifier: Apache-2.0
#include "simt/sample.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_set>

namespace rnntune::simt {
namespace {

constexpr std::uint64_t kWarpLanes = 32;
// Times the accesses asked for; a vector's may come as up to four.
constexpr std::uint64_t kPatienceWithOne = 4, kPatienceWithMany = 16;

std::uint64_t requests(const Profile& profile) {
  std::uint64_t sum = 0;
  for (const MemoryLine& line : profile.lines()) sum += line.requests;
  return sum;
}

// `count` different ones of `blocks`, the first among them. Steps of the golden section without a
// common divisor with the grid: edges come as often as elsewhere, whatever the grid's width.
std::unordered_set<std::uint64_t> spread(std::uint64_t count, std::uint64_t blocks) {
  auto step = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(0.618 * double(blocks)));
  while (std::gcd(step, blocks) != 1) ++step;
  std::unordered_set<std::uint64_t> chosen;
  for (std::uint64_t i = 0, at = 0; i < count; ++i, at = (at + step) % blocks) chosen.insert(at);
  return chosen;
}

// One launch, of which blocks run as they are asked for.
class Run {
 public:
  using WhyNot = std::function<std::string(const void* at, std::size_t bytes)>;

  Run(const KernelEntry& entry, const gpu::LaunchShape& shape, const void* arguments,
      const WhyNot& why_not)
      : entry_(entry), shape_(shape), arguments_(arguments) {
    options_.profile = &profile;
    options_.why_not_memory = [this, &why_not](const void* at, std::size_t bytes) {
      if (++accesses_ > most_accesses_) return std::string("is not counted any more");
      return why_not(at, bytes);
    };
  }

  // False where there was too much to do.
  Result<bool> blocks(std::uint64_t most_accesses, std::function<bool(std::uint64_t)> runs_block) {
    accesses_ = 0;
    most_accesses_ = most_accesses;
    options_.runs_block = std::move(runs_block);
    profile.begin_launch(entry_.expression);
    const Status status = launch(
        shape_, [&] { entry_.call(entry_.kernel, arguments_); }, options_);
    profile.end_launch();
    if (accesses_ > most_accesses_) return false;
    if (!status.ok()) return status.error();
    return true;
  }

  Profile profile;

 private:
  const KernelEntry& entry_;
  const gpu::LaunchShape& shape_;
  const void* const arguments_;
  std::uint64_t accesses_ = 0, most_accesses_ = 0;
  LaunchOptions options_;
};

}  // namespace

Result<Sample> sample_launch(
    const KernelEntry& entry, const gpu::LaunchShape& shape, const void* arguments,
    std::uint64_t most_requests,
    const std::function<std::string(const void* at, std::size_t bytes)>& why_not_memory) {
  const std::uint64_t blocks = std::uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  const bool together = shape.cooperative || blocks == 1;
  const std::uint64_t most_accesses = most_requests * kWarpLanes;
  Run run(entry, shape, arguments, why_not_memory);
  std::function<bool(std::uint64_t)> first;
  if (!together) first = [](std::uint64_t block) { return block == 0; };
  Result<bool> counted = run.blocks(most_accesses * kPatienceWithOne, first);
  if (!counted.ok()) return counted.error();
  if (!*counted) {
    return Sample{{},
                  0,
                  std::string(shape.cooperative ? "a launch" : "a block") + " makes more than " +
                      std::to_string(most_accesses * kPatienceWithOne) +
                      " accesses to memory, too many to emulate"};
  }
  if (together) return Sample{run.profile.lines(), 1, {}};
  const std::uint64_t of_one = std::max<std::uint64_t>(1, requests(run.profile));
  const std::uint64_t count = std::clamp<std::uint64_t>(most_requests / of_one, 1, blocks);
  if (count > 1) {
    std::unordered_set<std::uint64_t> chosen;
    if (count < blocks) chosen = spread(count, blocks);
    counted = run.blocks(most_accesses * kPatienceWithMany, [&](std::uint64_t block) {
      return block != 0 && (count == blocks || chosen.contains(block));
    });
    if (!counted.ok()) return counted.error();
    if (!*counted) return Sample{{}, 0, "its blocks differ too much for some to stand for all"};
  }
  return Sample{run.profile.lines(), double(count) / double(blocks), {}};
}

}  // namespace rnntune::simt
