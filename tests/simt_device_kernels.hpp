// SPDX-License-Identifier: Apache-2.0
// The kernels of simt_kernels.cuh as a device takes them.
#pragma once

#include <span>

#include "simt/registry.hpp"

namespace rnntune::simt {

std::span<const KernelEntry> plain_test_kernels();
std::span<const KernelEntry> checked_test_kernels();  // watched by the race checker

}  // namespace rnntune::simt
