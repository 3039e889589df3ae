// SPDX-License-Identifier: Apache-2.0
// What a launch must keep, checked before the device sees it: the driver's own refusal ("invalid
// value") names neither limit nor value.
#pragma once

#include "device/gpu.hpp"

namespace rnntune::gpu {

Status check_geometry(const LaunchShape& shape, const Limits& limits, const Kernel& kernel);

// A cooperative launch has all of its blocks resident at once.
Status check_resident(const LaunchShape& shape, const Limits& limits, const Kernel& kernel,
                      int blocks_per_multiprocessor);

// Bytes that a kernel takes by value.
Status check_arguments(std::size_t bytes, const Kernel& kernel);

}  // namespace rnntune::gpu
