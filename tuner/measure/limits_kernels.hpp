// SPDX-License-Identifier: Apache-2.0
// The loops that limits are measured with, one table for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rnntune::tuner {

struct LimitKernels {
  // Independent multiply-adds held in registers; returns the FLOPs done. `sink` keeps the result.
  double (*fma)(std::int64_t rounds, float* sink);
  // Reads `count` floats (a multiple of 1024) `rounds` times; returns the bytes read.
  double (*read)(const float* data, std::size_t count, std::int64_t rounds, float* sink);
};

// isa: DeviceInfo::isa.front().
LimitKernels limit_kernels(std::string_view isa);

}  // namespace rnntune::tuner
