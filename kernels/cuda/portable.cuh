// SPDX-License-Identifier: Apache-2.0
// The one header of device text: the same kernels are compiled by NVRTC or nvcc for a GPU, and by a
// C++ compiler for the emulator of kernels/simt/. In device text
//
//   RNNTUNE_SHARED(tile, float[16][68]);      is   __shared__ float tile[16][68];
//   RNNTUNE_DYNAMIC_SHARED(float, buffer);    is   the launch's dynamic shared memory, at float*
//   RNNTUNE_UNROLL                            is   #pragma unroll
//   rnntune::cuda::grid_barrier(state);       meets all blocks of a cooperative launch
//
// All of it is inside of
//
//   namespace rnntune::cuda {
//   inline namespace RNNTUNE_DEVICE_TEXT {
//
// so that a program may hold the text twice: as it is, and watched by the race checker.
#pragma once

#if !defined(RNNTUNE_DEVICE_TEXT)
#define RNNTUNE_DEVICE_TEXT device_text
#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

#define RNNTUNE_UNROLL _Pragma("unroll")
#define RNNTUNE_SHARED(name, ...)  \
  using name##_type = __VA_ARGS__; \
  __shared__ name##_type name
#define RNNTUNE_DYNAMIC_SHARED(T, name)                              \
  extern __shared__ __align__(128) unsigned char rnntune_dynamic_[]; \
  T* name = reinterpret_cast<T*>(rnntune_dynamic_)

namespace rnntune::cuda {

// `state` is one word of global memory that was zero before its first use and is used for nothing
// else. Block 0 adds what completes the others' ones to 2^31, so that each round flips the top bit
// and leaves the rest zero: nothing to reset, nothing to overflow. (cooperative_groups.h has the
// same barrier, and costs a second of compile time per kernel.)
__device__ inline void grid_barrier(unsigned* state) {
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
    const bool first = blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
    const unsigned others = gridDim.x * gridDim.y * gridDim.z - 1;
    __threadfence();
    const unsigned before = atomicAdd(state, first ? 0x80000000u - others : 1u);
    while (((before ^ *static_cast<volatile unsigned*>(state)) & 0x80000000u) == 0) {
    }
    __threadfence();
  }
  __syncthreads();
}

}  // namespace rnntune::cuda

#else

#include "simt/device_text.hpp"

namespace rnntune::cuda {

RNNTUNE_SIMT_UNWATCHED inline void grid_barrier(unsigned*, const char* file = __builtin_FILE(),
                                                int line = __builtin_LINE()) {
  simt::grid_barrier({"grid_barrier", file, line});
}

}  // namespace rnntune::cuda

#endif
