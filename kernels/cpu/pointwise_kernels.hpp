// SPDX-License-Identifier: Apache-2.0
// All gate arithmetic of a time step in one kernel, forward and backward, one table per instruction
// set. Arrays are in one of two orders: [samples, units], vectors along units, or [units, samples],
// vectors along samples. Rows and columns below are of that order; a gate's array begins
// gate_stride floats after the one before (i f g o).
//
// Bytes per unit and sample: 44 forward (pre-activations and c' in, activated gates, c and h out),
// 56 backward; about 130 and 50 FLOPs with the activations. From L2 and beyond it is bound by
// bandwidth, from L1 by the divisions of the activations.
#pragma once

#include <cstdint>
#include <string_view>

#include "cpu/elementwise.hpp"

namespace rnntune::cpu {

struct PointwiseGates {
  float* data = nullptr;
  std::int64_t ld = 0;
  std::int64_t gate_stride = 0;
  const float* bias = nullptr;  // of the block's first unit, gates bias_stride apart; null: none
  std::int64_t bias_stride = 0;
};

struct PointwiseForward {
  Shape n;
  PointwiseGates gates;  // in: pre-activations without bias; out: activated, where kept
  bool keep_gates = false;
  In c_before;
  Out c, h;
};

struct PointwiseBackward {
  Shape n;
  PointwiseGates gates;  // in: activated, or pre-activations; out: gradients of the pre-activations
  bool activate = false;  // they are pre-activations without bias
  In c_before, c;
  In dy, dh;  // gradient of h from above and from the next time step
  Out dc;     // in: of c from the next time step; out: of c_before
};

struct PointwiseKernels {
  // By order: [0] rows are samples, [1] rows are units.
  void (*forward[2])(const PointwiseForward&);
  void (*backward[2])(const PointwiseBackward&);
  void (*transpose)(Shape, In x, Out y);  // y[c][r] = x[r][c], shape of x
};

// isa: DeviceInfo::isa.front(), the best one allowed.
PointwiseKernels pointwise_kernels(std::string_view isa);

}  // namespace rnntune::cpu
