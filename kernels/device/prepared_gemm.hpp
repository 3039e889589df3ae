// SPDX-License-Identifier: Apache-2.0
// What a prepared product may be run with: the same on every device.
#pragma once

#include <string>

#include "rnntune/device.hpp"

namespace rnntune::gpu {

// Algorithms are chosen by whether operands begin at a multiple of it.
inline constexpr int kGemmAlignment = 16;

bool gemm_aligned(const float* operand);

// Why `gemm` is not what was prepared, naming what differs; empty when it is.
std::string why_not_prepared(const Gemm& prepared, const Gemm& gemm);

}  // namespace rnntune::gpu
