// SPDX-License-Identifier: Apache-2.0
// Vector sigmoid and tanh. Included once per Highway target, inside no namespace.
//
// Both come from e^x - 1 = 2^n (1 + p) - 1 with n = round(x / ln 2) and p a degree-6 polynomial of
// the remainder (Cephes' expf coefficients), one division each:
//   sigmoid(x) = 1 / (1 + e^-x)            tanh(x) = -(e^-2|x| - 1) / (e^-2|x| + 1), with the sign
//   of x
// Errors against float64, measured over the floats in tests/activations_test.cpp: below
// kActivationError, absolute for sigmoid, relative for tanh. They saturate to exactly 0, 1 and +-1,
// pass NaN on, and make no subnormals: |x| is clamped where the result has saturated (87 and 10).

#if defined(RNNTUNE_CPU_ACTIVATIONS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef RNNTUNE_CPU_ACTIVATIONS_INL_HPP
#undef RNNTUNE_CPU_ACTIVATIONS_INL_HPP
#else
#define RNNTUNE_CPU_ACTIVATIONS_INL_HPP
#endif

#include <hwy/highway.h>

#ifndef RNNTUNE_CPU_ACTIVATION_ERROR
#define RNNTUNE_CPU_ACTIVATION_ERROR
namespace rnntune::cpu {
inline constexpr double kActivationError = 3e-7;
}
#endif

HWY_BEFORE_NAMESPACE();
namespace rnntune::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

// e^x - 1 as scale * p + (scale - 1): p = e^r - 1 for the remainder r, scale = 2^n. |x| <= 88.
struct ExpParts {
  V p, scale;
};

HWY_INLINE ExpParts exp_parts(V x) {
  const F f;
  const hn::Rebind<std::int32_t, F> i;
  const V n = hn::Round(x * hn::Set(f, 1.44269504f));
  V r = hn::NegMulAdd(n, hn::Set(f, 0.693145752f), x);
  r = hn::NegMulAdd(n, hn::Set(f, 1.42860677e-6f), r);
  V q = hn::Set(f, 1.9875691500e-4f);
  q = hn::MulAdd(q, r, hn::Set(f, 1.3981999507e-3f));
  q = hn::MulAdd(q, r, hn::Set(f, 8.3334519073e-3f));
  q = hn::MulAdd(q, r, hn::Set(f, 4.1665795894e-2f));
  q = hn::MulAdd(q, r, hn::Set(f, 1.6666665459e-1f));
  q = hn::MulAdd(q, r, hn::Set(f, 5.0000001201e-1f));
  const V p = hn::MulAdd(q * r, r, r);
  const auto exponent = hn::ShiftLeft<23>(hn::ConvertTo(i, n) + hn::Set(i, 127));
  return {p, hn::BitCast(f, exponent)};
}

struct Math {
  static HWY_INLINE V one() { return hn::Set(F(), 1.0f); }
  static HWY_INLINE V mul_add(V a, V b, V c) { return hn::MulAdd(a, b, c); }
  static HWY_INLINE V neg_mul_add(V a, V b, V c) { return hn::NegMulAdd(a, b, c); }

  static HWY_INLINE V sigmoid(V x) {
    const F f;
    const V clamped = hn::Min(hn::Max(x, hn::Set(f, -87.0f)), hn::Set(f, 87.0f));
    const ExpParts e = exp_parts(hn::Neg(clamped));
    const V y = one() / (hn::MulAdd(e.scale, e.p, e.scale) + one());
    // Below -87 the true value is under 1.7e-38: exactly 0 spares the multiplications after it
    // subnormals.
    const V saturated = hn::IfThenZeroElse(hn::Lt(x, hn::Set(f, -87.0f)), y);
    return hn::IfThenElse(hn::IsNaN(x), x, saturated);
  }

  static HWY_INLINE V tanh(V x) {
    const F f;
    const V magnitude = hn::Min(hn::Abs(x), hn::Set(f, 10.0f));
    const ExpParts e = exp_parts(magnitude * hn::Set(f, -2.0f));
    const V em1 = hn::MulAdd(e.scale, e.p, e.scale - one());
    const V y = hn::CopySign(em1 / (em1 + hn::Set(f, 2.0f)), x);
    return hn::IfThenElse(hn::IsNaN(x), x, y);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::cpu
HWY_AFTER_NAMESPACE();

#endif
