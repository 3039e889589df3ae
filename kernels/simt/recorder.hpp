// SPDX-License-Identifier: Apache-2.0
// A device that computes nothing and notes what a plan queues on it: every launch of a problem of
// any size, for a GPU of any limits, at once and in little memory.
//
// One launch of each kind is run on the emulator, at its full size, and its memory accesses are
// counted (profile.hpp). Launches are of one kind where they differ in nothing but the places of
// their memory, and these by whole sectors; no kernel of ours looks at values to decide what it
// reads. Of a launch with too much to count some blocks stand for all; a kernel whose every block
// has too much is not counted.
//
// Memory is address space that reads as zeros; only what a counted kernel writes takes real pages.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/gpu.hpp"
#include "simt/profile.hpp"
#include "simt/registry.hpp"

namespace rnntune::simt {

// The launches of one kernel in blocks of one shape.
struct RecordedKernel {
  gpu::KernelId kernel;
  gpu::Extent3 block{};
  unsigned shared_bytes = 0;  // dynamic
  std::uint64_t launches = 0;
  gpu::Extent3 grid{};            // of the largest of them
  std::vector<MemoryLine> lines;  // of all of them; empty where nothing was counted
  double counted_share = 1;       // least part of the blocks of a launch that stand for all
  std::string uncounted;          // why nothing was; empty: it was
};

struct RecordedProduct {
  Gemm gemm;  // without operands
  std::uint64_t count = 0;

  double flops() const { return 2.0 * double(gemm.m) * double(gemm.n) * double(gemm.k); }
  // Each operand once, the result twice where it is added to.
  double bytes() const;
};

struct Moved {
  std::uint64_t count = 0, bytes = 0;
};

struct Recording {
  std::vector<RecordedKernel> kernels;  // in order of their first launch
  std::vector<RecordedProduct> products;
  Moved copies, fills;
  std::uint64_t graphs = 0;  // that were launched; what they hold is counted above
  std::uint64_t calls = 0;   // that the host made to launch all this, a graph in one
};

struct RecorderOptions {
  DeviceInfo info;
  gpu::Limits limits;
  std::uint64_t most_requests = 100'000;  // of warps, counted of one kind of launch
};

class Recorder : public gpu::GpuDevice {
 public:
  virtual Recording recording() const = 0;  // since it was opened
};

// With the kernels of cuda/instances.hpp; in a build whose sanitizers exclude that accesses are
// watched none are counted.
std::shared_ptr<Recorder> open_recorder(const RecorderOptions& options);

// With kernels of the caller's, which are counted if they are watched as for the race checker.
std::shared_ptr<Recorder> open_recorder(const RecorderOptions& options,
                                        std::vector<KernelEntry> kernels, bool watched);

}  // namespace rnntune::simt
