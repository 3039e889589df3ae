// SPDX-License-Identifier: Apache-2.0
// The kernels of the `pointwise` variant on one instruction set (cpu/target.hpp).
#include "cpu/pointwise_kernels.hpp"

#include "cpu/target.hpp"  // first of what includes Highway

#define RNNTUNE_CELL_INLINE HWY_INLINE
#include "cpu/activations-inl.hpp"
#include "cpu/tails-inl.hpp"
#include "cpu/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rnntune::cpu {
namespace HWY_NAMESPACE {
namespace {

#include "cell/lstm-inl.hpp"

// A whole vector, or the first lanes of one.
struct Whole {
  HWY_INLINE V load(const float* from) const { return hn::LoadU(F(), from); }
  HWY_INLINE void store(V v, float* to) const { hn::StoreU(v, F(), to); }
};
struct Some {
  std::size_t count;
  HWY_INLINE V load(const float* from) const { return load_tail(from, count); }
  HWY_INLINE void store(V v, float* to) const { store_tail(v, to, count); }
};

template <class Lanes>
HWY_INLINE LstmGates<V> load_gates(Lanes lanes, const PointwiseGates& g, const float* at) {
  return {lanes.load(at), lanes.load(at + g.gate_stride), lanes.load(at + 2 * g.gate_stride),
          lanes.load(at + 3 * g.gate_stride)};
}

template <class Lanes>
HWY_INLINE void store_gates(Lanes lanes, const PointwiseGates& g, const LstmGates<V>& v,
                            float* at) {
  lanes.store(v.i, at);
  lanes.store(v.f, at + g.gate_stride);
  lanes.store(v.g, at + 2 * g.gate_stride);
  lanes.store(v.o, at + 3 * g.gate_stride);
}

// The activated gates of the vector at (row, col), from pre-activations without bias.
template <bool kRowsAreUnits, class Lanes>
HWY_INLINE LstmGates<V> activate(Lanes lanes, const PointwiseGates& g, std::int64_t row,
                                 std::int64_t col, const float* at) {
  LstmGates<V> pre = load_gates(lanes, g, at);
  if (g.bias != nullptr) {
    const float* const bias = g.bias + (kRowsAreUnits ? row : col);
    const auto of = [&](std::int64_t gate) {
      const float* const b = bias + gate * g.bias_stride;
      if constexpr (kRowsAreUnits) {
        return hn::Set(F(), *b);
      } else {
        return lanes.load(b);
      }
    };
    pre = {pre.i + of(0), pre.f + of(1), pre.g + of(2), pre.o + of(3)};
  }
  return lstm_activate<Math>(pre.i, pre.f, pre.g, pre.o);
}

template <bool kRowsAreUnits, class Lanes>
HWY_INLINE void forward_at(Lanes lanes, const PointwiseForward& p, std::int64_t row,
                           std::int64_t col) {
  float* const at = p.gates.data + row * p.gates.ld + col;
  const LstmGates<V> gates = activate<kRowsAreUnits>(lanes, p.gates, row, col, at);
  const V before = lanes.load(p.c_before.data + row * p.c_before.ld + col);
  const LstmState<V> state = lstm_forward<Math>(gates, before);
  if (p.keep_gates) store_gates(lanes, p.gates, gates, at);
  lanes.store(state.c, p.c.data + row * p.c.ld + col);
  lanes.store(state.h, p.h.data + row * p.h.ld + col);
}

template <bool kRowsAreUnits, class Lanes>
HWY_INLINE void backward_at(Lanes lanes, const PointwiseBackward& p, std::int64_t row,
                            std::int64_t col) {
  float* const at = p.gates.data + row * p.gates.ld + col;
  const LstmGates<V> gates = p.activate ? activate<kRowsAreUnits>(lanes, p.gates, row, col, at)
                                        : load_gates(lanes, p.gates, at);
  const V before = lanes.load(p.c_before.data + row * p.c_before.ld + col);
  const V tanh_c = Math::tanh(lanes.load(p.c.data + row * p.c.ld + col));
  const V dh =
      lanes.load(p.dy.data + row * p.dy.ld + col) + lanes.load(p.dh.data + row * p.dh.ld + col);
  float* const dc_at = p.dc.data + row * p.dc.ld + col;
  V dc = lanes.load(dc_at);
  const LstmGates<V> gradients = lstm_backward<Math>(gates, before, tanh_c, dh, dc);
  lanes.store(dc, dc_at);
  store_gates(lanes, p.gates, gradients, at);
}

// Walks the rows of a block, whole vectors first.
template <class At>
HWY_INLINE void walk(Shape n, At at) {
  const std::int64_t lanes = std::int64_t(hn::Lanes(F()));
  for (std::int64_t row = 0; row < n.rows; ++row) {
    std::int64_t col = 0;
    for (; col + lanes <= n.cols; col += lanes) at(Whole{}, row, col);
    if (col < n.cols) at(Some{std::size_t(n.cols - col)}, row, col);
  }
}

template <bool kRowsAreUnits>
void forward(const PointwiseForward& p) {
  walk(p.n, [&](auto lanes, std::int64_t row, std::int64_t col)
                HWY_ATTR { forward_at<kRowsAreUnits>(lanes, p, row, col); });
}

template <bool kRowsAreUnits>
void backward(const PointwiseBackward& p) {
  walk(p.n, [&](auto lanes, std::int64_t row, std::int64_t col)
                HWY_ATTR { backward_at<kRowsAreUnits>(lanes, p, row, col); });
}

void transpose(Shape n, In x, Out y) {
  std::int64_t r = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; r + 4 <= n.rows; r += 4) {
    std::int64_t c = 0;
    for (; c + 4 <= n.cols; c += 4) {
      transpose_4x4(x.data + r * x.ld + c, x.ld, y.data + c * y.ld + r, y.ld);
    }
    for (; c < n.cols; ++c) {
      for (std::int64_t i = r; i < r + 4; ++i) y.data[c * y.ld + i] = x.data[i * x.ld + c];
    }
  }
#endif
  for (; r < n.rows; ++r) {
    for (std::int64_t c = 0; c < n.cols; ++c) y.data[c * y.ld + r] = x.data[r * x.ld + c];
  }
}

}  // namespace

PointwiseKernels make_pointwise_kernels() {
  return {{forward<false>, forward<true>}, {backward<false>, backward<true>}, transpose};
}

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::cpu
HWY_AFTER_NAMESPACE();
