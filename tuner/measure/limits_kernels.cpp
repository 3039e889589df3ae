// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set.
//
// fma: 12 chains cover latency 4 on two ports with a margin, and leave 4 of 16 registers for the
// operands on AVX2. The factor is below 1, so that nothing overflows or turns subnormal.
// read: 8 sums hide the add latency behind the loads, which are what is measured.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tuner/measure/limits_kernels.cpp"
#include "tuner/measure/limits_kernels.hpp"

#include <hwy/foreach_target.h>  // first: it includes this file again
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rnntune::tuner {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kChains = 12;

double fma(std::int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999f), term = hn::Set(d, 0.001f);
  // Every chain starts elsewhere: a compiler computes equal chains once, and the peak triples.
  auto a0 = hn::Set(d, 0.50f), a1 = hn::Set(d, 0.51f), a2 = hn::Set(d, 0.52f);
  auto a3 = hn::Set(d, 0.53f), a4 = hn::Set(d, 0.54f), a5 = hn::Set(d, 0.55f);
  auto a6 = hn::Set(d, 0.56f), a7 = hn::Set(d, 0.57f), a8 = hn::Set(d, 0.58f);
  auto a9 = hn::Set(d, 0.59f), a10 = hn::Set(d, 0.60f), a11 = hn::Set(d, 0.61f);
  for (std::int64_t i = 0; i < rounds; ++i) {
    a0 = hn::MulAdd(a0, factor, term);
    a1 = hn::MulAdd(a1, factor, term);
    a2 = hn::MulAdd(a2, factor, term);
    a3 = hn::MulAdd(a3, factor, term);
    a4 = hn::MulAdd(a4, factor, term);
    a5 = hn::MulAdd(a5, factor, term);
    a6 = hn::MulAdd(a6, factor, term);
    a7 = hn::MulAdd(a7, factor, term);
    a8 = hn::MulAdd(a8, factor, term);
    a9 = hn::MulAdd(a9, factor, term);
    a10 = hn::MulAdd(a10, factor, term);
    a11 = hn::MulAdd(a11, factor, term);
  }
  const auto low = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(a4, a5));
  const auto high = hn::Add(hn::Add(hn::Add(a6, a7), hn::Add(a8, a9)), hn::Add(a10, a11));
  *sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
  return 2.0 * static_cast<double>(kChains) * static_cast<double>(hn::Lanes(d)) *
         static_cast<double>(rounds);
}

double read(const float* data, std::size_t count, std::int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; i += 8 * lanes) {
      const float* at = data + i;
      s0 = hn::Add(s0, hn::Load(d, at));
      s1 = hn::Add(s1, hn::Load(d, at + lanes));
      s2 = hn::Add(s2, hn::Load(d, at + 2 * lanes));
      s3 = hn::Add(s3, hn::Load(d, at + 3 * lanes));
      s4 = hn::Add(s4, hn::Load(d, at + 4 * lanes));
      s5 = hn::Add(s5, hn::Load(d, at + 5 * lanes));
      s6 = hn::Add(s6, hn::Load(d, at + 6 * lanes));
      s7 = hn::Add(s7, hn::Load(d, at + 7 * lanes));
    }
  }
  const auto low = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
  const auto high = hn::Add(hn::Add(s4, s5), hn::Add(s6, s7));
  *sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
  return static_cast<double>(count * sizeof(float)) * static_cast<double>(rounds);
}

LimitKernels table() { return {fma, read}; }

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::tuner
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "cpu/dispatch.hpp"

namespace rnntune::tuner {

HWY_EXPORT(table);

LimitKernels limit_kernels(std::string_view isa) {
  return cpu::table_for(HWY_DISPATCH_TABLE(table), HWY_TARGETS, isa);
}

}  // namespace rnntune::tuner

#endif
