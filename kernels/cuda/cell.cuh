// SPDX-License-Identifier: Apache-2.0
// The gate mathematics on one float, and vectors of floats in memory.
#pragma once

#include "arguments.hpp"
#include "portable.cuh"

namespace rnntune::cuda {
inline namespace RNNTUNE_DEVICE_TEXT {

#define RNNTUNE_CELL_INLINE __device__ __forceinline__
#include "cell/lstm-inl.hpp"

// expf and tanhf of the toolkit are within 2 units in the last place. The fast division returns 0
// for divisors above 2^126, where the quotient is below 2^-126.
struct Math {
  __device__ static float mul_add(float a, float b, float c) { return fmaf(a, b, c); }
  __device__ static float neg_mul_add(float a, float b, float c) { return fmaf(-a, b, c); }
  __device__ static float sigmoid(float x) { return __fdividef(1.0f, 1.0f + expf(-x)); }
  __device__ static float tanh(float x) { return tanhf(x); }
  __device__ static float one() { return 1.0f; }
};

using Gates = LstmGates<float>;

template <int kWidth>
struct Vector {
  float at[kWidth];
};

// A vector of four begins on 16 bytes.
template <int kWidth>
__device__ __forceinline__ Vector<kWidth> load(const float* from) {
  if constexpr (kWidth == 4) {
    const float4 v = *reinterpret_cast<const float4*>(from);
    return {{v.x, v.y, v.z, v.w}};
  } else {
    static_assert(kWidth == 1);
    return {{*from}};
  }
}

// Zeros where from is null; `at` counts floats.
template <int kWidth>
__device__ __forceinline__ Vector<kWidth> load_or_zero(const float* from, long long at) {
  if (from == nullptr) return {};
  return load<kWidth>(from + at);
}

template <int kWidth>
__device__ __forceinline__ void store(float* to, const Vector<kWidth>& v) {
  if constexpr (kWidth == 4) {
    *reinterpret_cast<float4*>(to) = make_float4(v.at[0], v.at[1], v.at[2], v.at[3]);
  } else {
    *to = v.at[0];
  }
}

// The activated gates of a hidden unit: loaded, or made of the pre-activations that were loaded.
template <bool kActivate>
__device__ __forceinline__ Gates activated(Gates g, const float* bias, int hidden, int unit) {
  if constexpr (kActivate) {
    if (bias != nullptr) {
      const float* const b = bias + unit;
      const long long stride = hidden;
      g = {g.i + b[0], g.f + b[stride], g.g + b[2 * stride], g.o + b[3 * stride]};
    }
    return lstm_activate<Math>(g.i, g.f, g.g, g.o);
  } else {
    return g;
  }
}

}  // namespace RNNTUNE_DEVICE_TEXT
}  // namespace rnntune::cuda
