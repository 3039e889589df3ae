// SPDX-License-Identifier: Apache-2.0
// All gate arithmetic of an LSTM time step in one kernel, where everything is tbh. For thb and the
// mixtures of both see pointwise_tile.cuh.
//
// Idea: a thread takes kVector neighbouring units of a sample through the whole time step, so that
// every array is moved once. Bytes per unit and sample: forward 28 (4 pre-activations and c' in, c
// and h out), 44 where the activated gates are kept; backward 56 (4 gates, c', c, dy, dh, dc in; dc
// and 4 gradients out). About 130 and 50 FLOPs with the activations (170 where backward activates):
// bound by memory where the arrays exceed the caches, by the latency of a launch and of one load
// where they are small.
//
// Block: 32 threads along units, any number (1 to kMaxThreads / 32) along samples. Grid: x covers
// the units, 32 * kVector a block; y any number, blocks go on with the next samples.
// Limits: B and H below 2^31, strides below 2^63.
#pragma once

#include "cell.cuh"

namespace rnntune::cuda {
inline namespace RNNTUNE_DEVICE_TEXT {

inline constexpr int kMaxThreads = 512;

// Visits this thread's elements: visit(width, sample, first unit), with a width of kVector where
// all arrays are vectors (H is a multiple of 4 then), else of 1.
template <int kVector, class Visit>
__device__ __forceinline__ void each_element(int batch, int hidden, bool vectors, Visit visit) {
  const long long block_units = static_cast<long long>(blockIdx.x) * 32 * kVector;
  const long long step = static_cast<long long>(gridDim.y) * blockDim.y;
  for (long long sample = static_cast<long long>(blockIdx.y) * blockDim.y + threadIdx.y;
       sample < batch; sample += step) {
    if (kVector > 1 && vectors) {
      const long long unit = block_units + threadIdx.x * kVector;
      if (unit < hidden) visit.template at<kVector>(sample, static_cast<int>(unit));
    } else {
      RNNTUNE_UNROLL
      for (int v = 0; v < kVector; ++v) {
        const long long unit = block_units + v * 32 + threadIdx.x;
        if (unit < hidden) visit.template at<1>(sample, static_cast<int>(unit));
      }
    }
  }
}

template <int kWidth>
struct GateVectors {
  Vector<kWidth> gate[4];

  __device__ Gates of(int v) const {
    return {gate[0].at[v], gate[1].at[v], gate[2].at[v], gate[3].at[v]};
  }
  __device__ void set(int v, const Gates& g) {
    gate[0].at[v] = g.i;
    gate[1].at[v] = g.f;
    gate[2].at[v] = g.g;
    gate[3].at[v] = g.o;
  }
};

template <int kWidth>
__device__ __forceinline__ GateVectors<kWidth> load_gates(const float* at, long long stride) {
  return {{load<kWidth>(at), load<kWidth>(at + stride), load<kWidth>(at + 2 * stride),
           load<kWidth>(at + 3 * stride)}};
}

template <int kWidth>
__device__ __forceinline__ void store_gates(float* at, long long stride,
                                            const GateVectors<kWidth>& g) {
  RNNTUNE_UNROLL
  for (int q = 0; q < 4; ++q) store<kWidth>(at + q * stride, g.gate[q]);
}

template <bool kKeepGates>
struct ForwardElement {
  const PointwiseForwardArguments& a;

  template <int kWidth>
  __device__ __forceinline__ void at(long long sample, int unit) const {
    const long long state = sample * a.hidden + unit;
    float* const gates_at = a.gates + sample * a.ld + unit;
    GateVectors<kWidth> gates = load_gates<kWidth>(gates_at, a.gate_stride);
    const Vector<kWidth> before = load_or_zero<kWidth>(a.c_before, state);
    Vector<kWidth> c, h;
    RNNTUNE_UNROLL
    for (int v = 0; v < kWidth; ++v) {
      const Gates g = activated<true>(gates.of(v), a.bias, a.hidden, unit + v);
      const LstmState<float> s = lstm_forward<Math>(g, before.at[v]);
      c.at[v] = s.c;
      h.at[v] = s.h;
      gates.set(v, g);
    }
    if (kKeepGates) store_gates<kWidth>(gates_at, a.gate_stride, gates);
    store<kWidth>(a.c + state, c);
    store<kWidth>(a.h + state, h);
    if (a.c_n != nullptr) store<kWidth>(a.c_n + state, c);
    if (a.h_n != nullptr) store<kWidth>(a.h_n + state, h);
  }
};

template <int kVector, bool kKeepGates>
__global__ void __launch_bounds__(kMaxThreads) pointwise_forward(PointwiseForwardArguments a) {
  each_element<kVector>(a.batch, a.hidden, a.vectors, ForwardElement<kKeepGates>{a});
}

template <bool kActivate>
struct BackwardElement {
  const PointwiseBackwardArguments& a;

  template <int kWidth>
  __device__ __forceinline__ void at(long long sample, int unit) const {
    const long long state = sample * a.hidden + unit;
    GateVectors<kWidth> gates = load_gates<kWidth>(a.gates + sample * a.ld + unit, a.gate_stride);
    const Vector<kWidth> before = load_or_zero<kWidth>(a.c_before, state);
    const Vector<kWidth> c = load<kWidth>(a.c + state);
    const Vector<kWidth> dy = load<kWidth>(a.dy + state);
    const Vector<kWidth> dh = load_or_zero<kWidth>(a.dh, state);
    Vector<kWidth> dc = load_or_zero<kWidth>(a.dc_in, state);
    RNNTUNE_UNROLL
    for (int v = 0; v < kWidth; ++v) {
      const Gates g = activated<kActivate>(gates.of(v), a.bias, a.hidden, unit + v);
      gates.set(v, lstm_backward<Math>(g, before.at[v], Math::tanh(c.at[v]), dy.at[v] + dh.at[v],
                                       dc.at[v]));
    }
    store<kWidth>(a.dc_out + state, dc);
    store_gates<kWidth>(a.direct + sample * a.direct_ld + unit, a.direct_gate_stride, gates);
  }
};

template <int kVector, bool kActivate>
__global__ void __launch_bounds__(kMaxThreads) pointwise_backward(PointwiseBackwardArguments a) {
  each_element<kVector>(a.batch, a.hidden, a.vectors, BackwardElement<kActivate>{a});
}

}  // namespace RNNTUNE_DEVICE_TEXT
}  // namespace rnntune::cuda
