// SPDX-License-Identifier: Apache-2.0
// The CUDA device emulated on the host (backend "simt"): the same plans, the same kernel text, and
// as much as can be had of what a GPU would do to a plan that is wrong.
//
// Work is deferred. It runs when something waits for it or too much is queued, on the thread that
// waits, one piece after the other, in an order that only streams, events and the seed determine:
// what no event orders runs in another order under another seed. A fault drops all that is queued
// and is the error of the next call with a stream; the device is usable after that (a CUDA context
// is not).
//
// Fresh memory holds NaN. Copies, fills and products must stay within one allocation, and so must
// each access of a checked kernel: what is not memory of the device ends the launch before it is
// touched. A plain kernel that leaves its memory is stopped by the address sanitizer or found out
// by guards, and host memory that it is given serves it like any other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/gpu.hpp"
#include "simt/registry.hpp"

namespace rnntune::simt {

class Profile;

struct OpenOptions {
  // Of the order of work and of a launch's threads; 0: as called, and by their numbers.
  std::uint64_t seed = 0;
  bool checked = false;  // the kernels that the race checker watches, many times slower
  // Of checked kernels: counts their accesses (profile.hpp), instead of looking for races.
  std::shared_ptr<Profile> profile{};
  std::int64_t memory_bytes = std::int64_t{8} << 30;
};

// With the kernels of cuda/instances.hpp.
Result<std::shared_ptr<Device>> open_simt(const OpenOptions& options = {});

// With kernels of the caller's.
std::shared_ptr<gpu::GpuDevice> open_simt(const OpenOptions& options,
                                          std::vector<KernelEntry> kernels);

}  // namespace rnntune::simt
