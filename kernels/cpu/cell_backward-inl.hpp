// SPDX-License-Identifier: Apache-2.0
// Backward data of the `cell` variant: dG(t+1) times the packed recurrent weights, and the
// pointwise backward of step t on the tile while it is in registers and L1; without the cell the
// same GEMM gives dx and dh_0. Included once per target.
//
// A register tile holds rows x 1..4 vectors of hidden units. Per time step the GEMM costs 8 * H * H
// FLOPs a sample and streams 16 * H * H bytes of weights once per row tile; fewer vectors a panel
// allow more rows a tile, which is better where weights come from L2 or L3.

#if defined(RNNTUNE_CPU_CELL_BACKWARD_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef RNNTUNE_CPU_CELL_BACKWARD_INL_HPP
#undef RNNTUNE_CPU_CELL_BACKWARD_INL_HPP
#else
#define RNNTUNE_CPU_CELL_BACKWARD_INL_HPP
#endif

#include "cpu/cell_forward-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rnntune::cpu {
namespace HWY_NAMESPACE {

struct BackwardRun {
  const BackwardPanel& panel;
  mutable Prefetch prefetch;
};

// The pointwise backward of `rows` rows from `row` on, for vector v of the panel; dh_rec is
// [rows][vectors][V].
HWY_INLINE void backward_rows(const BackwardPanel& p, int v, std::int64_t row, int rows,
                              const float* dh_rec) {
  const F f;
  const BackwardCell& cell = p.cell;
  const std::int64_t units = p.columns - v * lanes();
  float* gates = cell.gates + v * cell.gates_stride + row * 4 * lanes();
  const float* c_before = cell.c_before + v * cell.c_stride + row * lanes();
  const float* tanh_c = cell.tanh_c + v * cell.tanh_c_stride + row * lanes();
  float* dc = cell.dc + v * cell.dc_stride + row * lanes();
  float* dbias = cell.dbias + v * 4 * lanes();
  const V zero = hn::Zero(f);
  LstmGates<V> sum{zero, zero, zero, zero};
  for (int r = 0; r < rows; ++r) {
    V dh = hn::LoadU(f, dh_rec + (r * p.vectors + v) * lanes());
    dh = dh + load_some(units, cell.dy + (row + r) * cell.ldy + v * lanes());
    if (cell.dh) dh = dh + load_some(units, cell.dh + (row + r) * cell.ldh + v * lanes());
    V dc_row = hn::LoadU(f, dc + r * lanes());
    const LstmGates<V> d = lstm_backward<Math>(load_gates(gates + r * 4 * lanes()),
                                               hn::LoadU(f, c_before + r * lanes()),
                                               hn::LoadU(f, tanh_c + r * lanes()), dh, dc_row);
    hn::StoreU(dc_row, f, dc + r * lanes());
    store_gates(d, gates + r * 4 * lanes());
    sum = {sum.i + d.i, sum.f + d.f, sum.g + d.g, sum.o + d.o};
  }
  // Tile sums first: one chain over all T*B rows would lose digits.
  const LstmGates<V> before = load_gates(dbias);
  store_gates({before.i + sum.i, before.f + sum.f, before.g + sum.g, before.o + sum.o}, dbias);
}

template <int kVectors>
struct BackwardTiles {
  template <int kRows>
  struct Tile {
    static HWY_INLINE void run(const BackwardRun& run, std::int64_t row) {
      const F f;
      const BackwardPanel& p = run.panel;
      V acc[kRows][kVectors];
      clear(acc);
      PartialSums<kRows, kVectors> sums;
      const std::int64_t chain = kSumDepth / (4 * lanes());
      for (std::int64_t first = 0;; first += chain) {
        const bool last = p.blocks - first <= chain;
        sum_blocks(run, row, first, last ? p.blocks : first + chain, acc);
        if (last) break;
        sums.keep(acc);
      }
      sums.add_to(acc);
      if (p.out) return store(p, row, acc);
      HWY_ALIGN float dh[kRows * kVectors * HWY_MAX_BYTES / sizeof(float)];
      RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r)
          RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v)
              hn::StoreU(acc[r][v], f, dh + (r * kVectors + v) * lanes());
      for (int v = 0; v < kVectors; ++v) backward_rows(p, v, row, kRows, dh);
    }

    static HWY_INLINE void sum_blocks(const BackwardRun& run, std::int64_t row, std::int64_t first,
                                      std::int64_t end, V (&acc)[kRows][kVectors]) {
      const BackwardPanel& p = run.panel;
      const std::int64_t depth = 4 * lanes();
      const float* a = p.dgates + first * p.block_stride + row * depth;
      const float* w = p.w + first * depth * kVectors * lanes();
      const bool tail = end == p.blocks && p.last_units < lanes();
      for (std::int64_t block = first; block < end; ++block) {
        // All four gates in one go, or the units that exist of one gate after the other.
        const bool whole = !tail || block + 1 < end;
        const std::int64_t part = whole ? depth : lanes(), count = whole ? depth : p.last_units;
        for (std::int64_t k = 0; k < depth; k += part)
          multiply<kRows, kVectors>(
              {a + k, depth, 1, w + k * kVectors * lanes(), kVectors * lanes()}, count, acc,
              run.prefetch);
        a += p.block_stride;
        w += depth * kVectors * lanes();
      }
    }

    static HWY_INLINE void store(const BackwardPanel& p, std::int64_t row,
                                 const V (&acc)[kRows][kVectors]) {
      RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r) RNNTUNE_UNROLL for (int v = 0; v < kVectors;
                                                                         ++v)
          store_some(acc[r][v], p.columns - v * lanes(), p.out + (row + r) * p.ldo + v * lanes());
    }
  };
};

// Blocks [first, end) of the depth added to sums [rows][vectors][V], of rows from `row` on.
struct StretchRun {
  BackwardRun run;
  std::int64_t row, first, end;
  float* sums;
};

template <int kVectors>
struct StretchTiles {
  template <int kRows>
  struct Tile {
    static HWY_INLINE void run(const StretchRun& stretch, std::int64_t row) {
      V acc[kRows][kVectors];
      clear(acc);
      BackwardTiles<kVectors>::template Tile<kRows>::sum_blocks(stretch.run, stretch.row + row,
                                                                stretch.first, stretch.end, acc);
      RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r)
          RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v) {
        float* at = stretch.sums + ((row + r) * kVectors + v) * lanes();
        hn::Store(acc[r][v] + hn::Load(F(), at), F(), at);
      }
    }
  };
};

constexpr std::int64_t kStretchRows = 32;  // their sums stay in L1 beside the weights

template <int kVectors>
HWY_INLINE void backward_stretches(const BackwardPanel& p, int most, std::int64_t stretch) {
  const F f;
  const std::int64_t block_floats = 4 * lanes() * kVectors * lanes();
  for (std::int64_t row = 0; row < p.rows; row += kStretchRows) {
    const std::int64_t rows = p.rows - row < kStretchRows ? p.rows - row : kStretchRows;
    HWY_ALIGN float sums[kStretchRows * kVectors * HWY_MAX_BYTES / sizeof(float)];
    std::fill_n(sums, rows * kVectors * lanes(), 0.0f);
    for (std::int64_t first = 0; first < p.blocks; first += stretch) {
      const std::int64_t end = p.blocks - first < stretch ? p.blocks : first + stretch;
      const bool last = end == p.blocks;
      Prefetch next;
      if (p.ahead.floats > 0)
        next = spread({last ? p.ahead.at : p.w + end * block_floats, kStretchFloats},
                      (rows + most - 1) / most, (end - first) * 4 * lanes());
      run_tiles<StretchTiles<kVectors>::template Tile, kMaxRows<kVectors>>(
          rows, most, StretchRun{{p, next}, row, first, end, sums});
    }
    for (int v = 0; v < kVectors; ++v) {
      if (p.out == nullptr) {
        backward_rows(p, v, row, static_cast<int>(rows), sums);
        continue;
      }
      for (std::int64_t r = 0; r < rows; ++r)
        store_some(hn::Load(f, sums + (r * kVectors + v) * lanes()), p.columns - v * lanes(),
                   p.out + (row + r) * p.ldo + v * lanes());
    }
  }
}

template <int kVectors>
HWY_NOINLINE void backward_panel(const BackwardPanel& p) {
  constexpr int kMost = kMaxRows<kVectors>;
  const int most = p.tile_rows > 0 && p.tile_rows < kMost ? p.tile_rows : kMost;
  const std::int64_t tiles = (p.rows + most - 1) / most;
  if constexpr (kStretches) {
    const std::int64_t stretch =
        std::max<std::int64_t>(1, kStretchFloats / (4 * lanes() * kVectors * lanes()));
    if (p.blocks > stretch && p.rows > most) return backward_stretches<kVectors>(p, most, stretch);
  }
  const BackwardRun run{p, spread(p.ahead, tiles, p.blocks * 4 * lanes())};
  run_tiles<BackwardTiles<kVectors>::template Tile, kMost>(p.rows, most, run);
}

HWY_NOINLINE void backward(const BackwardPanel& p) {
  constexpr void (*panels[])(const BackwardPanel&) = {backward_panel<1>, backward_panel<2>,
                                                      backward_panel<3>, backward_panel<4>};
  panels[p.vectors - 1](p);
}

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::cpu
HWY_AFTER_NAMESPACE();

#endif
