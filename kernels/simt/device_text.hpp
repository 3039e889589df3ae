// SPDX-License-Identifier: Apache-2.0
// The words of CUDA for device text that is compiled for the host; it comes in through
// cuda/portable.cuh. It needs nothing of the CUDA toolkit, and gives way to the toolkit's vector
// types where they came before.
//
// __shared__ stays unknown on purpose: RNNTUNE_SHARED makes an object of exact size per block and
// declaration, whose overrun the address sanitizer or a guard sees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "simt/thread.hpp"

#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __forceinline__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

#define threadIdx (::rnntune::simt::thread_index())
#define blockIdx (::rnntune::simt::block_index())
#define blockDim (::rnntune::simt::block_dim())
#define gridDim (::rnntune::simt::grid_dim())

#define RNNTUNE_UNROLL
#define RNNTUNE_SHARED(name, ...)                 \
  using name##_type = __VA_ARGS__;                \
  static char name##_key;                         \
  name##_type& name = *static_cast<name##_type*>( \
      ::rnntune::simt::shared_object(&name##_key, #name, sizeof(name##_type)))
#define RNNTUNE_DYNAMIC_SHARED(T, name) T* name = static_cast<T*>(::rnntune::simt::dynamic_shared())

// By value and always inline, so that reads of operands are on the caller's line, and no copy of
// the host's std::max is watched.
template <class T>
__forceinline__ T max(T a, T b) {
  return a < b ? b : a;
}
template <class T>
__forceinline__ T min(T a, T b) {
  return b < a ? b : a;
}

#if !defined(__VECTOR_TYPES_H__)
struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
#define RNNTUNE_SIMT_VECTORS(T, name)                        \
  struct alignas(2 * sizeof(T)) name##2 {                    \
    T x, y;                                                  \
  };                                                         \
  struct alignas(4 * sizeof(T)) name##4 {                    \
    T x, y, z, w;                                            \
  };                                                         \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; } \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
RNNTUNE_SIMT_VECTORS(float, float)
RNNTUNE_SIMT_VECTORS(int, int)
RNNTUNE_SIMT_VECTORS(unsigned, uint)
#undef RNNTUNE_SIMT_VECTORS
#endif

// Macros where glibc declares a function of that name for itself, and where an access shall be on
// the caller's line.
#define __expf(x) ::expf(x)
#define __logf(x) ::logf(x)
#define __fdividef(a, b) ((a) / (b))
#define __ldg(address) (*(address))
#define atomicAdd ::rnntune::simt::atomic_add
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }

namespace rnntune::simt {

template <class To, class From>
RNNTUNE_SIMT_UNWATCHED inline To bits_as(From value) {
  static_assert(sizeof(From) <= sizeof(To) || sizeof(To) <= sizeof(From));
  To to{};
  std::memcpy(&to, &value, std::min(sizeof(To), sizeof(From)));
  return to;
}

template <class T>
RNNTUNE_SIMT_UNWATCHED inline T shuffle(unsigned mask, T value, int source, const Site& site) {
  static_assert(sizeof(T) <= 8);
  return bits_as<T>(
      warp_meet(WarpOperation::shuffle, mask, bits_as<std::uint64_t>(value), source, site));
}

}  // namespace rnntune::simt

#define RNNTUNE_SIMT_AT const char *file = __builtin_FILE(), int line = __builtin_LINE()

RNNTUNE_SIMT_UNWATCHED inline void __syncthreads(RNNTUNE_SIMT_AT) {
  rnntune::simt::block_barrier({"__syncthreads", file, line});
}
RNNTUNE_SIMT_UNWATCHED inline void __syncwarp(unsigned mask = 0xffffffffu, RNNTUNE_SIMT_AT) {
  rnntune::simt::warp_meet(rnntune::simt::WarpOperation::sync, mask, 0, 0,
                           {"__syncwarp", file, line});
}

// A lane whose source is outside its segment of `width` lanes keeps its own value.
template <class T>
RNNTUNE_SIMT_UNWATCHED inline T __shfl_sync(unsigned mask, T value, int source, int width = 32,
                                            RNNTUNE_SIMT_AT) {
  const int segment = rnntune::simt::lane() & ~(width - 1);
  return rnntune::simt::shuffle(mask, value, segment | (source & (width - 1)),
                                {"__shfl_sync", file, line});
}
template <class T>
RNNTUNE_SIMT_UNWATCHED inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                                                RNNTUNE_SIMT_AT) {
  const int lane = rnntune::simt::lane(), source = lane ^ bits;
  const bool beyond = source >= (lane & ~(width - 1)) + width;
  return rnntune::simt::shuffle(mask, value, beyond ? lane : source,
                                {"__shfl_xor_sync", file, line});
}
template <class T>
RNNTUNE_SIMT_UNWATCHED inline T __shfl_down_sync(unsigned mask, T value, unsigned delta,
                                                 int width = 32, RNNTUNE_SIMT_AT) {
  const int lane = rnntune::simt::lane(), down = static_cast<int>(delta);
  const bool beyond = (lane & (width - 1)) + down >= width;
  return rnntune::simt::shuffle(mask, value, beyond ? lane : lane + down,
                                {"__shfl_down_sync", file, line});
}
template <class T>
RNNTUNE_SIMT_UNWATCHED inline T __shfl_up_sync(unsigned mask, T value, unsigned delta,
                                               int width = 32, RNNTUNE_SIMT_AT) {
  const int lane = rnntune::simt::lane(), up = static_cast<int>(delta);
  const bool beyond = (lane & (width - 1)) < up;
  return rnntune::simt::shuffle(mask, value, beyond ? lane : lane - up,
                                {"__shfl_up_sync", file, line});
}

RNNTUNE_SIMT_UNWATCHED inline unsigned __ballot_sync(unsigned mask, int vote, RNNTUNE_SIMT_AT) {
  return static_cast<unsigned>(rnntune::simt::warp_meet(
      rnntune::simt::WarpOperation::ballot, mask, vote != 0, 0, {"__ballot_sync", file, line}));
}
RNNTUNE_SIMT_UNWATCHED inline int __any_sync(unsigned mask, int vote, RNNTUNE_SIMT_AT) {
  return rnntune::simt::warp_meet(rnntune::simt::WarpOperation::ballot, mask, vote != 0, 0,
                                  {"__any_sync", file, line}) != 0;
}
// By who votes no: lanes of the mask that have exited do not count.
RNNTUNE_SIMT_UNWATCHED inline int __all_sync(unsigned mask, int vote, RNNTUNE_SIMT_AT) {
  return rnntune::simt::warp_meet(rnntune::simt::WarpOperation::ballot, mask, vote == 0, 0,
                                  {"__all_sync", file, line}) == 0;
}
#undef RNNTUNE_SIMT_AT

RNNTUNE_SIMT_UNWATCHED inline void __threadfence() { rnntune::simt::fence(); }
RNNTUNE_SIMT_UNWATCHED inline void __threadfence_block() { rnntune::simt::fence(); }
RNNTUNE_SIMT_UNWATCHED inline void __nanosleep(unsigned) { rnntune::simt::pause(); }
