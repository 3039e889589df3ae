// SPDX-License-Identifier: Apache-2.0
// The last lanes of a row, without touching memory beyond it. Included once per Highway target.

#if defined(RNNTUNE_CPU_TAILS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef RNNTUNE_CPU_TAILS_INL_HPP
#undef RNNTUNE_CPU_TAILS_INL_HPP
#else
#define RNNTUNE_CPU_TAILS_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstring>

// Highway's masked operations only promise not to use the lanes that are off; these instruction
// sets do not read or write their memory either.
#undef RNNTUNE_CPU_TRUE_MASKS
#define RNNTUNE_CPU_TRUE_MASKS \
  (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL)

HWY_BEFORE_NAMESPACE();
namespace rnntune::cpu {
namespace HWY_NAMESPACE {

// Lanes [0, count) from memory, 0 above; 0 < count < lanes.
HWY_INLINE hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::ScalableTag<float>> load_tail(
    const float* from, std::size_t count) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> f;
#if RNNTUNE_CPU_TRUE_MASKS
  return hn::MaskedLoad(hn::FirstN(f, count), f, from);
#else
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(lanes, from, count * sizeof(float));
  return hn::Load(f, lanes);
#endif
}

template <class Vector>
HWY_INLINE void store_tail(Vector v, float* to, std::size_t count) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> f;
#if RNNTUNE_CPU_TRUE_MASKS
  hn::BlendedStore(v, hn::FirstN(f, count), f, to);
#else
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, f, lanes);
  std::memcpy(to, lanes, count * sizeof(float));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::cpu
HWY_AFTER_NAMESPACE();

#endif
