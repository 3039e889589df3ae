// SPDX-License-Identifier: Apache-2.0
// A plan runs one config of one problem. Arguments were checked by Rnn: pointers are there, sizes
// fit, T and B are positive and within capacity, the reserve is in the state that the call needs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rnntune/rnn.hpp"

namespace rnntune {

struct PlanSizes {
  std::size_t packed = 0;
  std::size_t workspace = 0;
  std::size_t reserve = 0;
};

// Rnn passes the sizes of the forward call again to both backward calls.
struct Extent {
  std::int64_t time = 0;
  std::int64_t batch = 0;
};

struct PlanBuffers {
  std::byte* packed = nullptr;
  std::byte* workspace = nullptr;
  std::byte* reserve = nullptr;  // null in inference
};

class Plan {
 public:
  virtual ~Plan() = default;
  virtual PlanSizes sizes() const = 0;
  virtual Status pack(const LayerWeights* layers, const PlanBuffers& buffers, Stream stream) = 0;
  virtual Status forward(Mode mode, Extent extent, const Forward& args, const PlanBuffers& buffers,
                         Stream stream) = 0;
  virtual Status backward_data(Extent extent, const BackwardData& args, const PlanBuffers& buffers,
                               Stream stream) = 0;
  virtual Status backward_weights(Extent extent, const BackwardWeights& args,
                                  const PlanBuffers& buffers, Stream stream) = 0;
};

}  // namespace rnntune
