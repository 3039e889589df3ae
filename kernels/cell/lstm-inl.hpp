// SPDX-License-Identifier: Apache-2.0
// The gate mathematics of the LSTM, forward and backward, once for every fast path. It is text: it
// names no type and no instruction set, so it compiles inside a SIMD target, for a scalar and as
// device code. Math gives the operations:
//   mul_add(a, b, c) = a b + c   neg_mul_add(a, b, c) = c - a b   sigmoid, tanh   one() = 1
// and V has + - *. RNNTUNE_CELL_INLINE is the function attribute that the includer needs (inline,
// device, ...).
//
// Forward   i = sigma(pi)  f = sigma(pf)  g = tanh(pg)  o = sigma(po)      p*: pre-activations with
// all biases
//           c = f c' + i g   h = o tanh(c)
// Backward  with dh the whole gradient of h (from above and from the next time step) and dc that of
// c from the next step:
//           dc += dh o (1 - tanh(c)^2)    dc' = dc f
//           di = dc g i (1 - i)   df = dc c' f (1 - f)   dg = dc i (1 - g^2)   do = dh tanh(c) o (1
//           - o)
// Derived from the forward form by the chain rule; proved against finite differences through the
// oracle.

template <class V>
struct LstmGates {
  V i, f, g, o;
};

template <class V>
struct LstmState {
  V c, tanh_c, h;
};

template <class Math, class V>
RNNTUNE_CELL_INLINE LstmGates<V> lstm_activate(V pi, V pf, V pg, V po) {
  return {Math::sigmoid(pi), Math::sigmoid(pf), Math::tanh(pg), Math::sigmoid(po)};
}

template <class Math, class V>
RNNTUNE_CELL_INLINE LstmState<V> lstm_forward(const LstmGates<V>& a, V c_before) {
  const V c = Math::mul_add(a.f, c_before, a.i * a.g);
  const V tanh_c = Math::tanh(c);
  return {c, tanh_c, a.o * tanh_c};
}

// Returns the gradients of the pre-activations; dc is updated in place to the gradient of c'.
template <class Math, class V>
RNNTUNE_CELL_INLINE LstmGates<V> lstm_backward(const LstmGates<V>& a, V c_before, V tanh_c, V dh,
                                               V& dc) {
  const V one = Math::one();
  const V dh_o = dh * a.o;
  const V dc_all = dc + Math::neg_mul_add(dh_o * tanh_c, tanh_c, dh_o);
  const V dc_i = dc_all * a.i;
  dc = dc_all * a.f;
  return {dc_i * a.g * (one - a.i), dc * c_before * (one - a.f),
          Math::neg_mul_add(dc_i * a.g, a.g, dc_i), dh_o * tanh_c * (one - a.o)};
}
