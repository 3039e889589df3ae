// SPDX-License-Identifier: Apache-2.0
// What one launch of a watched kernel accesses, by source line, counted over as many of its blocks
// as there is time for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simt/launch.hpp"
#include "simt/profile.hpp"
#include "simt/registry.hpp"

namespace rnntune::simt {

struct Sample {
  std::vector<MemoryLine> lines;  // of the blocks that ran
  double share = 1;               // of the launch's blocks
  std::string uncounted;          // why nothing was; empty: it was
};

// Runs the first block, and then all others, or only so many, spread over the grid, that there are
// about `most_requests` of warps. Where one block, or a cooperative launch, whose blocks must run
// together, makes many times as many, it is given up and not counted. `why_not_memory` as in
// LaunchOptions.
Result<Sample> sample_launch(
    const KernelEntry& entry, const gpu::LaunchShape& shape, const void* arguments,
    std::uint64_t most_requests,
    const std::function<std::string(const void* at, std::size_t bytes)>& why_not_memory);

}  // namespace rnntune::simt
