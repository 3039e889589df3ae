// SPDX-License-Identifier: Apache-2.0
// One kernel per elementwise operation, as a framework without fusion runs them.
//
// Idea: a thread takes four neighbouring columns of a row, as one vector where memory allows. 4
// bytes per element and operand for 1 to 25 FLOPs: bound by memory, or by the launch.
//
// Block: 32 threads along columns, 1 to kMaxOperationRows along rows. Grid: x covers the columns,
// kOperationColumns a block; y any number, blocks go on with the next rows.
// Limits: rows and columns below 2^31, strides below 2^63.
#pragma once

#include "cell.cuh"

namespace rnntune::cuda {
inline namespace RNNTUNE_DEVICE_TEXT {

inline constexpr int kMaxOperationRows = 16, kOperationColumns = 128;

// of(a, b, y): y is what was there. kB, kY: whether the operation reads b and y.
struct Add {
  static constexpr bool kB = true, kY = false;
  __device__ static float of(float a, float b, float) { return a + b; }
};
struct Multiply {
  static constexpr bool kB = true, kY = false;
  __device__ static float of(float a, float b, float) { return a * b; }
};
struct MultiplyAdd {
  static constexpr bool kB = true, kY = true;
  __device__ static float of(float a, float b, float y) { return fmaf(a, b, y); }
};
struct Sigmoid {
  static constexpr bool kB = false, kY = false;
  __device__ static float of(float a, float, float) { return Math::sigmoid(a); }
};
struct Tanh {
  static constexpr bool kB = false, kY = false;
  __device__ static float of(float a, float, float) { return Math::tanh(a); }
};
// a: the gradient of the result; b: the result.
struct SigmoidBackward {
  static constexpr bool kB = true, kY = false;
  __device__ static float of(float a, float b, float) { return a * b * (1.0f - b); }
};
struct TanhBackward {
  static constexpr bool kB = true, kY = false;
  __device__ static float of(float a, float b, float) { return a * fmaf(-b, b, 1.0f); }
};

template <class Operation, int kWidth>
__device__ __forceinline__ void apply_at(const OperationArguments& p, long long row,
                                         long long column) {
  const Vector<kWidth> a = load<kWidth>(p.a + row * p.lda + column);
  Vector<kWidth> b{}, y{};
  if (Operation::kB) b = load<kWidth>(p.b + row * p.ldb + column);
  float* const at = p.y + row * p.ldy + column;
  if (Operation::kY) y = load<kWidth>(at);
  RNNTUNE_UNROLL
  for (int v = 0; v < kWidth; ++v) y.at[v] = Operation::of(a.at[v], b.at[v], y.at[v]);
  store<kWidth>(at, y);
}

template <class Operation>
__global__ void __launch_bounds__(32 * kMaxOperationRows) apply(OperationArguments p) {
  const long long first = static_cast<long long>(blockIdx.x) * kOperationColumns;
  const long long step = static_cast<long long>(gridDim.y) * blockDim.y;
  for (long long row = static_cast<long long>(blockIdx.y) * blockDim.y + threadIdx.y; row < p.rows;
       row += step) {
    if (p.vectors) {
      const long long column = first + threadIdx.x * 4;
      if (column < p.columns) apply_at<Operation, 4>(p, row, column);
    } else {
      for (long long column = first + threadIdx.x;
           column < min(first + kOperationColumns, static_cast<long long>(p.columns));
           column += 32) {
        apply_at<Operation, 1>(p, row, column);
      }
    }
  }
}

}  // namespace RNNTUNE_DEVICE_TEXT
}  // namespace rnntune::cuda
