// SPDX-License-Identifier: Apache-2.0
// What the emulated device says that it is.
#pragma once

#include "simt/device.hpp"

namespace rnntune::simt {

extern const gpu::Limits kLimits;

DeviceInfo describe(const OpenOptions& options);

// Blocks of a launch that a multiprocessor holds at once. Without the kernel's static shared
// memory: only the launch itself will know it.
int resident_blocks(const gpu::LaunchShape& shape);

}  // namespace rnntune::simt
