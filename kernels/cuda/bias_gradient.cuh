// SPDX-License-Identifier: Apache-2.0
// The gradient of the biases: sums of the gradients of the pre-activations over all time steps and
// samples, added to what is there.
//
// Idea: every read is of 32 neighbouring floats. By columns (tbh) a lane owns a column, the threads
// of a block share its rows and meet in shared memory; by rows (thb) a warp owns a row and meets in
// shuffles. With kAtomic the other dimension is cut again, over blocks that add to memory in any
// order: more of them at once, and a result that is not repeatable. 4 bytes and one FLOP per
// element: bound by memory.
//
// Block: 32 lanes times 1 to kMaxSumRows. Grid, by columns: x the columns, 32 a block; y 1, or with
// kAtomic any number of parts. By rows: x any number, of blocks of blockDim.y rows each; y as
// above. Limits: 4 KiB of shared memory by columns.
#pragma once

#include "arguments.hpp"
#include "portable.cuh"

namespace rnntune::cuda {
inline namespace RNNTUNE_DEVICE_TEXT {

inline constexpr int kMaxSumRows = 32;

template <bool kAtomic>
__device__ __forceinline__ void add(float* db, float sum) {
  if (kAtomic) {
    atomicAdd(db, sum);
  } else {
    *db += sum;
  }
}

template <bool kAtomic>
__device__ __forceinline__ void add_gradient(const BiasGradientArguments& a, long long at,
                                             float sum) {
  add<kAtomic>(a.db + at, sum);
  if (a.db_too != nullptr) add<kAtomic>(a.db_too + at, sum);
}

template <bool kAtomic>
__global__ void __launch_bounds__(32 * kMaxSumRows) bias_gradient_tbh(BiasGradientArguments a) {
  RNNTUNE_SHARED(sums, float[kMaxSumRows][32]);
  const int lane = static_cast<int>(threadIdx.x);
  const long long column = static_cast<long long>(blockIdx.x) * 32 + lane;
  const long long step = static_cast<long long>(gridDim.y) * blockDim.y;
  float sum = 0;
  if (column < a.columns) {
    for (long long row = static_cast<long long>(blockIdx.y) * blockDim.y + threadIdx.y;
         row < a.rows; row += step) {
      sum += a.dgates[row * a.ld + column];
    }
  }
  sums[threadIdx.y][lane] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= a.columns) return;
  for (unsigned other = 1; other < blockDim.y; ++other) sum += sums[other][lane];
  add_gradient<kAtomic>(a, column, sum);
}

template <bool kAtomic>
__global__ void __launch_bounds__(32 * kMaxSumRows) bias_gradient_thb(BiasGradientArguments a) {
  const int lane = static_cast<int>(threadIdx.x);
  const long long step = static_cast<long long>(gridDim.x) * blockDim.y;
  for (long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y; row < a.rows;
       row += step) {
    float sum = 0;
    for (long long column = static_cast<long long>(blockIdx.y) * 32 + lane; column < a.columns;
         column += static_cast<long long>(gridDim.y) * 32) {
      sum += a.dgates[row * a.ld + column];
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    }
    if (lane == 0) add_gradient<kAtomic>(a, row, sum);
  }
}

}  // namespace RNNTUNE_DEVICE_TEXT
}  // namespace rnntune::cuda
