// SPDX-License-Identifier: Apache-2.0
// The register tile that every GEMM of the cell variant is made of. Included once per Highway
// target.
//
// acc[r][v] += sum over k of a[r * row_stride + k * k_stride] * b[k * b_stride + v * lanes]: a is
// broadcast, b streams. With rows * vectors independent sums it is bound by FMA throughput from 8
// to 10 accumulators on, if b comes from L1 or L2. Tiles with fewer sums split the k loop into
// independent chains, to cover the latency of an FMA.

#if defined(RNNTUNE_CPU_MICROKERNEL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef RNNTUNE_CPU_MICROKERNEL_INL_HPP
#undef RNNTUNE_CPU_MICROKERNEL_INL_HPP
#else
#define RNNTUNE_CPU_MICROKERNEL_INL_HPP
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "cpu/cell_common.hpp"
#include "cpu/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace rnntune::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;
using Mask = hn::Mask<F>;

HWY_INLINE std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(F())); }

// Registers decide how many rows a tile of so many vectors may have without spilling.
constexpr bool kManyRegisters = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON;
template <int kVectors>
constexpr int kMaxRows = kManyRegisters ? (kVectors == 4   ? 6
                                           : kVectors == 3 ? 8
                                           : kVectors == 2 ? 12
                                                           : 14)
                                        : (kVectors == 4   ? 3
                                           : kVectors == 3 ? 4
                                           : kVectors == 2 ? 6
                                                           : 10);

// A tile of few registers takes three rows or so, and reads the panel's weights once for each tile:
// faster than L2 gives them. There a stretch of the depth, whose weights stay in half of a usual
// L1, meets all rows before the next one.
constexpr bool kStretches = !kManyRegisters;
constexpr std::int64_t kStretchFloats = 4096;

// Loads and stores of part of a vector that touch no memory beyond it.
constexpr bool kMaskedMemory = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2;

struct Operands {
  const float* a;
  std::int64_t row_stride, k_stride;
  const float* b;
  std::int64_t b_stride;
};

template <int kRows, int kVectors>
HWY_INLINE void multiply_one(const Operands& o, std::int64_t k, V (&acc)[kRows][kVectors]) {
  const F f;
  const float* a = o.a + k * o.k_stride;
  const float* b = o.b + k * o.b_stride;
  V bv[kVectors];
  RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v) bv[v] = hn::LoadU(f, b + v * lanes());
  RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
    const V av = hn::Set(f, a[r * o.row_stride]);
    RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(av, bv[v], acc[r][v]);
  }
}

template <int kRows, int kVectors>
HWY_INLINE void clear(V (&acc)[kRows][kVectors]) {
  RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r) RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v)
      acc[r][v] = hn::Zero(F());
}

// Brings a stretch of memory towards the core while tiles are computed: `lines` cache lines for
// every 4 k.
struct Prefetch {
  const char* at = nullptr;
  std::int64_t lines = 0;

  HWY_INLINE void next() {
    for (std::int64_t i = 0; i < lines; ++i, at += 64)
      __builtin_prefetch(at, 0, kStretches ? 3 : 2);
  }
};

// Spreads what lies ahead over the tiles' k loops.
HWY_INLINE Prefetch spread(const Ahead& ahead, std::int64_t tiles, std::int64_t depth) {
  if (ahead.floats == 0 || depth == 0) return {};
  const std::int64_t groups = tiles * ((depth + 3) / 4);
  return {reinterpret_cast<const char*>(ahead.at), (ahead.floats / 16 + groups - 1) / groups};
}

// Few sums: four (or two) chains over k, added at the end. Returns the k where it stopped.
template <int kRows, int kVectors, int kChains>
HWY_INLINE std::int64_t multiply_chains(const Operands& o, std::int64_t depth,
                                        V (&acc)[kRows][kVectors], Prefetch& prefetch) {
  V chains[kChains - 1][kRows][kVectors];
  RNNTUNE_UNROLL for (int c = 0; c < kChains - 1; ++c) clear(chains[c]);
  std::int64_t k = 0;
  for (; k + kChains <= depth; k += kChains) {
    if (k % 4 == 0) prefetch.next();
    multiply_one<kRows, kVectors>(o, k, acc);
    RNNTUNE_UNROLL for (int c = 0; c < kChains - 1; ++c)
        multiply_one<kRows, kVectors>(o, k + c + 1, chains[c]);
  }
  RNNTUNE_UNROLL for (int c = 0; c < kChains - 1; ++c)
      RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r)
          RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v) acc[r][v] = acc[r][v] + chains[c][r][v];
  return k;
}

// The one loop of a tile: a tile's kernel inlines it once, since every copy costs compile time and
// instruction cache. Four k at a time, unrolled: a nested loop of four was 3% slower.
template <int kRows, int kVectors>
HWY_INLINE void multiply(const Operands& o, std::int64_t depth, V (&acc)[kRows][kVectors],
                         Prefetch& prefetch) {
  constexpr int kChains = kRows * kVectors <= 4                     ? 4
                          : kRows * kVectors <= 8 && kManyRegisters ? 2
                                                                    : 1;
  std::int64_t k = 0;
  if constexpr (kChains > 1) {
    k = multiply_chains<kRows, kVectors, kChains>(o, depth, acc, prefetch);
    for (; k < depth; ++k) multiply_one<kRows, kVectors>(o, k, acc);
  } else {
    Operands at = o;
    for (; k + 4 <= depth; k += 4) {
      prefetch.next();
      RNNTUNE_UNROLL for (int i = 0; i < 4; ++i) multiply_one<kRows, kVectors>(at, i, acc);
      at.a += 4 * at.k_stride;
      at.b += 4 * at.b_stride;
    }
    for (int i = 0; k + i < depth; ++i) multiply_one<kRows, kVectors>(at, i, acc);
  }
}

// Lanes [0, count) of a vector; count may be more than a vector or negative.
HWY_INLINE Mask first_lanes(std::int64_t count) {
  return hn::FirstN(F(), static_cast<std::size_t>(count < 0 ? 0 : count));
}

HWY_INLINE V load_some(std::int64_t count, const float* from) {
  const F f;
  if (count >= lanes()) return hn::LoadU(f, from);
  if constexpr (kMaskedMemory) return hn::MaskedLoad(first_lanes(count), f, from);
  HWY_ALIGN float whole[HWY_MAX_BYTES / sizeof(float)] = {};
  for (std::int64_t i = 0; i < count; ++i) whole[i] = from[i];
  return hn::Load(f, whole);
}

HWY_INLINE void store_some(V value, std::int64_t count, float* to) {
  const F f;
  if (count >= lanes()) return hn::StoreU(value, f, to);
  if constexpr (kMaskedMemory) return hn::BlendedStore(value, first_lanes(count), f, to);
  HWY_ALIGN float whole[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(value, f, whole);
  for (std::int64_t i = 0; i < count; ++i) to[i] = whole[i];
}

// A float sum of thousands of terms in one chain loses digits: chains end after this many, and are
// added up in memory.
constexpr std::int64_t kSumDepth = 512;

template <int kRows, int kVectors>
class PartialSums {
 public:
  // Adds acc to what is kept, and clears it.
  HWY_INLINE void keep(V (&acc)[kRows][kVectors]) {
    add_to(acc);
    RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r) RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v)
        hn::Store(acc[r][v], F(), tile_ + (r * kVectors + v) * lanes());
    clear(acc);
    kept_ = true;
  }

  // Adds what was kept to acc.
  HWY_INLINE void add_to(V (&acc)[kRows][kVectors]) const {
    if (!kept_) return;
    RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r) RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v)
        acc[r][v] = acc[r][v] + hn::Load(F(), tile_ + (r * kVectors + v) * lanes());
  }

 private:
  HWY_ALIGN float tile_[kRows * kVectors * HWY_MAX_BYTES / sizeof(float)];
  bool kept_ = false;
};

// multiply() of any depth, in chains of at most kSumDepth.
template <int kRows, int kVectors>
HWY_INLINE void multiply_deep(Operands o, std::int64_t depth, V (&acc)[kRows][kVectors],
                              PartialSums<kRows, kVectors>& sums, Prefetch& prefetch) {
  for (;; depth -= kSumDepth) {
    multiply<kRows, kVectors>(o, depth < kSumDepth ? depth : kSumDepth, acc, prefetch);
    if (depth <= kSumDepth) return;
    sums.keep(acc);
    o.a += kSumDepth * o.k_stride;
    o.b += kSumDepth * o.b_stride;
  }
}

// Calls Tile<rows>::run(first row, argument) over [0, rows) in balanced tiles of at most `most`
// rows.
template <template <int> class Tile, int kRows, class Argument>
HWY_INLINE void run_tile(int rows, const Argument& argument, std::int64_t row) {
  if constexpr (kRows > 0) {
    if (rows == kRows) return Tile<kRows>::run(argument, row);
    run_tile<Tile, kRows - 1>(rows, argument, row);
  }
}

template <template <int> class Tile, int kMost, class Argument>
HWY_INLINE void run_tiles(std::int64_t rows, int most, const Argument& argument) {
  if (most <= 0 || most > kMost) most = kMost;
  const std::int64_t tiles = (rows + most - 1) / most;
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t first = rows * i / tiles;
    run_tile<Tile, kMost>(static_cast<int>(rows * (i + 1) / tiles - first), argument, first);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::cpu
HWY_AFTER_NAMESPACE();

#endif
