// SPDX-License-Identifier: Apache-2.0
// Tensors of a problem's dtype as bytes.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <span>
#include <vector>

#include "rnntune/problem.hpp"

namespace rnntune::reference::cudnn {

std::size_t value_bytes(Dtype dtype);
cudnnDataType_t data_type(Dtype dtype);

// Rounded to nearest, ties to even.
std::vector<std::byte> encode(std::span<const float> values, Dtype dtype);
std::vector<float> decode(std::span<const std::byte> bytes, Dtype dtype);

}  // namespace rnntune::reference::cudnn
