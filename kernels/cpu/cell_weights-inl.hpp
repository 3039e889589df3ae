// SPDX-License-Identifier: Apache-2.0
// Weight gradients and packing of the `cell` variant. Included once per target.
//
// dW[4H, N] += dG^T[4H, T*B] * A[T*B, N]: 8 * H * N FLOPs a row. dG is read as it lies,
// [block][row][4][V], broadcast; the activations are packed once per block of rows into panels of
// up to four vectors, so that a tile's operand is contiguous and stays in L2. Few columns (N under
// three vectors) take the other orientation: dG is the vector side.

#if defined(RNNTUNE_CPU_CELL_WEIGHTS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef RNNTUNE_CPU_CELL_WEIGHTS_INL_HPP
#undef RNNTUNE_CPU_CELL_WEIGHTS_INL_HPP
#else
#define RNNTUNE_CPU_CELL_WEIGHTS_INL_HPP
#endif

#include "cpu/cell_kernels.hpp"
#include "cpu/microkernel-inl.hpp"
#include "cpu/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rnntune::cpu {
namespace HWY_NAMESPACE {

static_assert(kPackRows <= kSumDepth, "a pass over the rows is one chain of sums");

template <int kVectors>
struct WeightsTiles {
  template <int kRows>
  struct Tile {
    static HWY_INLINE void run(const WeightsTile& p, std::int64_t unit) {
      V acc[kRows][kVectors];
      clear(acc);
      float* dw = p.dw + unit * p.ldw;
      for (int r = 0; r < kRows; ++r)
        for (int v = 0; v < kVectors; ++v) __builtin_prefetch(dw + r * p.ldw + v * lanes(), 1);
      Prefetch none;
      multiply<kRows, kVectors>({p.dgates + unit, 1, 4 * lanes(), p.packed, kVectors * lanes()},
                                p.rows, acc, none);
      RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r)
          RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v) {
        float* at = dw + r * p.ldw + v * lanes();
        const std::int64_t count = p.columns - v * lanes();
        store_some(acc[r][v] + load_some(count, at), count, at);
      }
    }
  };
};

template <int kVectors>
HWY_NOINLINE void weights_panel(const WeightsTile& p) {
  constexpr int kMost = kMaxRows<kVectors> < 8 ? kMaxRows<kVectors> : 8;
  run_tiles<WeightsTiles<kVectors>::template Tile, kMost>(p.units, kMost, p);
}

HWY_NOINLINE void weights(const WeightsTile& p) {
  constexpr void (*panels[])(const WeightsTile&) = {weights_panel<1>, weights_panel<2>,
                                                    weights_panel<3>, weights_panel<4>};
  panels[p.vectors - 1](p);
}

// Rows summed in one chain: thousands of rows in a single float sum would lose digits.
constexpr std::int64_t kSumRows = 256;

template <int kRows>
struct NarrowTile {
  static HWY_INLINE void run(const WeightsNarrow& p, std::int64_t column) {
    HWY_ALIGN float tile[kRows * 4 * HWY_MAX_BYTES / sizeof(float)] = {};
    for (std::int64_t row = 0; row < p.rows; row += kSumRows) add_rows(p, column, row, tile);
    for (int gate = 0; gate < 4; ++gate) {
      for (std::int64_t unit = 0; unit < p.units; ++unit) {
        float* dw = p.dw + gate * p.gate_stride + unit * p.ldw + column;
        for (int r = 0; r < kRows; ++r) dw[r] += tile[(r * 4 + gate) * lanes() + unit];
      }
    }
  }

  static HWY_INLINE void add_rows(const WeightsNarrow& p, std::int64_t column, std::int64_t row,
                                  float* tile) {
    const F f;
    V acc[kRows][4];
    clear(acc);
    const std::int64_t rows = p.rows - row < kSumRows ? p.rows - row : kSumRows;
    Prefetch none;
    multiply<kRows, 4>(
        {p.a + row * p.lda + column, 1, p.lda, p.dgates + row * 4 * lanes(), 4 * lanes()}, rows,
        acc, none);
    RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r) RNNTUNE_UNROLL for (int v = 0; v < 4; ++v) {
      float* at = tile + (r * 4 + v) * lanes();
      hn::Store(hn::Load(f, at) + acc[r][v], f, at);
    }
  }
};

HWY_NOINLINE void weights_narrow(const WeightsNarrow& p) {
  run_tiles<NarrowTile, kMaxRows<4>>(p.columns, kMaxRows<4>, p);
}

constexpr std::int64_t kPackColumns = 16;  // a cache line of a row of w

// Columns [0, count) of four units of one gate.
HWY_INLINE void pack_four(const float* w, std::int64_t depth, std::int64_t count, float* packed) {
  const std::int64_t stride = 4 * lanes();
  std::int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; k + 4 <= count; k += 4) transpose_4x4(w + k, depth, packed + k * stride, stride);
#endif
  for (; k < count; ++k)
    for (int r = 0; r < 4; ++r) packed[k * stride + r] = w[r * depth + k];
}

// A cache line of columns at a time: each line of w is read once, even where rows are a power of
// two apart and fall into the same sets, and what is written stays in L1 until its lines are whole.
HWY_NOINLINE void pack(const PackBlock& p) {
  const std::int64_t stride = 4 * lanes();
  for (std::int64_t k = 0; k < p.depth; k += kPackColumns) {
    const std::int64_t count = p.depth - k < kPackColumns ? p.depth - k : kPackColumns;
    for (int gate = 0; gate < 4; ++gate) {
      const float* w = p.w + gate * p.gate_stride + k;
      float* packed = p.packed + k * stride + gate * lanes();
      // The lines that come next, read and written: too far apart for the hardware to see streams.
      for (std::int64_t i = 0; i < p.units; ++i)
        __builtin_prefetch(w + i * p.depth + kPackColumns, 0, 2);
      for (std::int64_t i = kPackColumns; i < 2 * kPackColumns; ++i)
        __builtin_prefetch(packed + i * stride, 1, 3);
      std::int64_t unit = 0;
      for (; unit + 4 <= p.units; unit += 4)
        pack_four(w + unit * p.depth, p.depth, count, packed + unit);
      for (; unit < lanes(); ++unit)
        for (std::int64_t i = 0; i < count; ++i)
          packed[i * stride + unit] = unit < p.units ? w[unit * p.depth + i] : 0.0f;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::cpu
HWY_AFTER_NAMESPACE();

#endif
