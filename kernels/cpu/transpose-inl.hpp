// SPDX-License-Identifier: Apache-2.0
// Transposition of float matrices. Included once per Highway target.

#if defined(RNNTUNE_CPU_TRANSPOSE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef RNNTUNE_CPU_TRANSPOSE_INL_HPP
#undef RNNTUNE_CPU_TRANSPOSE_INL_HPP
#else
#define RNNTUNE_CPU_TRANSPOSE_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace rnntune::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// Transposes 4 rows x 4 columns: to[c * to_stride + r] = from[r * from_stride + c].
HWY_INLINE void transpose_4x4(const float* from, std::int64_t from_stride, float* to,
                              std::int64_t to_stride) {
  const hn::FixedTag<float, 4> f;
  const hn::Repartition<std::uint64_t, decltype(f)> pairs;
  const auto r0 = hn::LoadU(f, from);
  const auto r1 = hn::LoadU(f, from + from_stride);
  const auto r2 = hn::LoadU(f, from + 2 * from_stride);
  const auto r3 = hn::LoadU(f, from + 3 * from_stride);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(f, r0, r1));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(f, r0, r1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(f, r2, r3));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(f, r2, r3));
  hn::StoreU(hn::BitCast(f, hn::InterleaveLower(pairs, low01, low23)), f, to);
  hn::StoreU(hn::BitCast(f, hn::InterleaveUpper(pairs, low01, low23)), f, to + to_stride);
  hn::StoreU(hn::BitCast(f, hn::InterleaveLower(pairs, high01, high23)), f, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(f, hn::InterleaveUpper(pairs, high01, high23)), f, to + 3 * to_stride);
}
#endif

constexpr std::int64_t kTransposeBlock = 16;  // a cache line of floats

// Transposes rows x columns, both at most kTransposeBlock. The inner loop runs along the lines of
// the side whose rows lie further apart, often a power of two and so in the same cache sets: few
// of them are in use at a time.
HWY_INLINE void transpose_block(const float* from, std::int64_t from_stride, std::int64_t rows,
                                std::int64_t columns, float* to, std::int64_t to_stride) {
  std::int64_t whole_rows = 0, whole_columns = 0;
#if HWY_TARGET != HWY_SCALAR
  whole_rows = rows / 4 * 4;
  whole_columns = columns / 4 * 4;
  if (from_stride > to_stride) {
    for (std::int64_t r = 0; r < whole_rows; r += 4)
      for (std::int64_t c = 0; c < whole_columns; c += 4)
        transpose_4x4(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
  } else {
    for (std::int64_t c = 0; c < whole_columns; c += 4)
      for (std::int64_t r = 0; r < whole_rows; r += 4)
        transpose_4x4(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
  }
#endif
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c)
      to[c * to_stride + r] = from[r * from_stride + c];
}

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::cpu
HWY_AFTER_NAMESPACE();

#endif
