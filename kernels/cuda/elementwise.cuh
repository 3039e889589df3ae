// SPDX-License-Identifier: Apache-2.0
// Kernels that touch every element once. Any grid of one dimension covers any count.
#pragma once

#include "portable.cuh"

namespace rnntune::cuda {
inline namespace RNNTUNE_DEVICE_TEXT {

template <class T>
struct FillArguments {
  T* to;
  long long count;
  T value;
};

template <class T>
__global__ void fill(FillArguments<T> a) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < a.count;
       i += step) {
    a.to[i] = a.value;
  }
}

// A matrix by rows; the strides are those between rows, in elements.
template <class T>
struct CopyRowsArguments {
  T* to;
  const T* from;
  long long rows, columns, to_stride, from_stride;
};

template <class T>
__global__ void copy_rows(CopyRowsArguments<T> a) {
  for (long long row = blockIdx.x; row < a.rows; row += gridDim.x) {
    for (long long column = threadIdx.x; column < a.columns; column += blockDim.x) {
      a.to[row * a.to_stride + column] = a.from[row * a.from_stride + column];
    }
  }
}

}  // namespace RNNTUNE_DEVICE_TEXT
}  // namespace rnntune::cuda
