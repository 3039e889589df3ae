// SPDX-License-Identifier: Apache-2.0
// One vectorised kernel per elementwise operation, as a framework without fusion runs them, one
// table per instruction set. Operands are rows of `cols` floats, ld floats apart. An output may be
// one of the inputs. Each moves 4 bytes per element and operand for 1 to 25 FLOPs, so all are bound
// by the cache or memory that the operands are in.
#pragma once

#include <cstdint>
#include <string_view>

namespace rnntune::cpu {

struct Shape {
  std::int64_t rows = 0, cols = 0;
};
struct In {
  const float* data = nullptr;
  std::int64_t ld = 0;
};
struct Out {
  float* data = nullptr;
  std::int64_t ld = 0;

  operator In() const { return {data, ld}; }
};

struct Elementwise {
  void (*add_bias)(Shape, const float* bias, Out y);     // y += bias, the same for every row
  void (*add)(Shape, In a, In b, Out y);                 // y = a + b
  void (*multiply)(Shape, In a, In b, Out y);            // y = a b
  void (*multiply_add)(Shape, In a, In b, Out y);        // y += a b
  void (*sigmoid)(Shape, In x, Out y);                   // y = sigma(x)
  void (*tanh)(Shape, In x, Out y);                      // y = tanh(x)
  void (*sigmoid_backward)(Shape, In dy, In y, Out dx);  // dx = dy y (1 - y)
  void (*tanh_backward)(Shape, In dy, In y, Out dx);     // dx = dy (1 - y^2)
  void (*sum_rows)(Shape, In x, float* sums);            // sums[c] += sum over rows of x
  void (*sum_cols)(Shape, In x, float* sums);            // sums[r] += sum over columns of x
};

// isa: DeviceInfo::isa.front(), the best one allowed.
Elementwise elementwise_kernels(std::string_view isa);

}  // namespace rnntune::cpu
