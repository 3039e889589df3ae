// SPDX-License-Identifier: Apache-2.0
// Weight gradients, packing and transposition of the `cell` variant in layout [T,H,B]. Included
// once per target.
//
// dW[4H, N] += dG^T[4H, T*B] * A[T*B, N]: 8 * H * N FLOPs a row of A. Samples are the depth here:
// dG^T is broadcast as it lies, the activations are packed once per block of samples into panels
// of up to four vectors of columns. A tile keeps its sums over all segments of the block.

#if defined(RNNTUNE_CPU_CELL_THB_WEIGHTS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef RNNTUNE_CPU_CELL_THB_WEIGHTS_INL_HPP
#undef RNNTUNE_CPU_CELL_THB_WEIGHTS_INL_HPP
#else
#define RNNTUNE_CPU_CELL_THB_WEIGHTS_INL_HPP
#endif

#include "cpu/cell_thb_kernels.hpp"
#include "cpu/microkernel-inl.hpp"
#include "cpu/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rnntune::cpu {
namespace HWY_NAMESPACE {

// Where row unit * 4 + gate lies among rows in the caller's order.
HWY_INLINE std::int64_t thb_caller_row(std::int64_t row, std::int64_t hidden) {
  return row % 4 * hidden + row / 4;
}

template <int kVectors>
struct ThbWeightsTiles {
  template <int kRows>
  struct Tile {
    static HWY_INLINE void run(const ThbWeights& p, std::int64_t row) {
      V acc[kRows][kVectors];
      clear(acc);
      float* dw[kRows];
      for (int r = 0; r < kRows; ++r) {
        dw[r] = p.dw + thb_caller_row(p.first + row + r, p.hidden) * p.ldw;
        for (int v = 0; v < kVectors; ++v) __builtin_prefetch(dw[r] + v * lanes(), 1);
      }
      const float* packed = p.packed;
      Prefetch none;
      for (int s = 0; s < p.segment_count; ++s) {
        const ThbSegment& segment = p.segments[s];
        multiply<kRows, kVectors>({segment.dgates + (p.first + row) * segment.width, segment.width,
                                   1, packed, kVectors * lanes()},
                                  segment.samples, acc, none);
        packed += segment.samples * kVectors * lanes();
      }
      RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r)
          RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v) {
        const std::int64_t count = p.columns - v * lanes();
        float* at = dw[r] + v * lanes();
        store_some(acc[r][v] + load_some(count, at), count, at);
      }
    }
  };
};

template <int kVectors>
HWY_NOINLINE void thb_weights_panel(const ThbWeights& p) {
  constexpr int kMost = kMaxRows<kVectors> < 8 ? kMaxRows<kVectors> : 8;
  run_tiles<ThbWeightsTiles<kVectors>::template Tile, kMost>(p.count, kMost, p);
}

HWY_NOINLINE void thb_weights(const ThbWeights& p) {
  constexpr void (*panels[])(const ThbWeights&) = {thb_weights_panel<1>, thb_weights_panel<2>,
                                                   thb_weights_panel<3>, thb_weights_panel<4>};
  panels[p.vectors - 1](p);
}

HWY_NOINLINE void thb_bias(const ThbBias& p) {
  const F f;
  for (std::int64_t row = p.first; row < p.first + p.count; ++row) {
    V sum = hn::Zero(f);
    for (int s = 0; s < p.segment_count; ++s) {
      const ThbSegment& segment = p.segments[s];
      const float* dgates = segment.dgates + row * segment.width;
      std::int64_t b = 0;
      for (; b + lanes() <= segment.samples; b += lanes()) sum = sum + hn::LoadU(f, dgates + b);
      if (b < segment.samples) {
        // Rows are whole vectors: what padded lanes hold is read, and dropped.
        sum = sum + hn::IfThenElseZero(first_lanes(segment.samples - b), hn::LoadU(f, dgates + b));
      }
    }
    const float total = hn::GetLane(hn::SumOfLanes(f, sum));
    const std::int64_t at = thb_caller_row(row, p.hidden);
    p.bias_ih[at] += total;
    if (p.bias_hh) p.bias_hh[at] += total;
  }
}

HWY_NOINLINE void thb_pack_forward(const ThbPackForward& p) {
  const std::int64_t depth = p.matrix.depth, stride = 4 * p.units;
  const std::int64_t gate_stride = p.matrix.hidden * depth;
  for (std::int64_t begin = 0; begin < depth; begin += kTransposeBlock) {
    const std::int64_t count = depth - begin < kTransposeBlock ? depth - begin : kTransposeBlock;
    for (std::int64_t unit = 0; unit < p.units; ++unit)
      transpose_block(p.matrix.w + (p.first + unit) * depth + begin, gate_stride, 4, count,
                      p.packed + begin * stride + 4 * unit, stride);
  }
}

HWY_NOINLINE void thb_pack_backward(const ThbPackBackward& p) {
  constexpr std::int64_t kUnits = 4;  // sixteen rows at a time: each line of w is read once
  const std::int64_t depth = p.matrix.depth, hidden = p.matrix.hidden;
  for (std::int64_t begin = p.first; begin < p.last; begin += kUnits) {
    const std::int64_t end = begin + kUnits < p.last ? begin + kUnits : p.last;
    for (std::int64_t panel = 0; panel < p.panels.count; ++panel) {
      const std::int64_t first = p.panels.first(panel), width = p.panels.width(panel);
      float* to = p.packed + first * 4 * hidden + begin * 4 * width;
      for (std::int64_t row = 4 * begin; row < 4 * end; ++row, to += width) {
        const float* from = p.matrix.w + thb_caller_row(row, hidden) * depth + first;
        for (std::int64_t i = 0; i < width; i += lanes())
          store_some(load_some(width - i, from + i), width - i, to + i);
      }
    }
  }
}

HWY_NOINLINE void thb_transpose(const ThbTranspose& p) {
  const std::int64_t rows = p.from ? p.rows : 0;
  if (rows < p.padded) {
    for (std::int64_t column = 0; column < p.columns; ++column)
      for (std::int64_t row = rows; row < p.padded; ++row) p.to[column * p.to_stride + row] = 0;
  }
  for (std::int64_t row = 0; row < rows; row += kTransposeBlock) {
    const std::int64_t height = rows - row < kTransposeBlock ? rows - row : kTransposeBlock;
    for (std::int64_t column = 0; column < p.columns; column += kTransposeBlock) {
      const std::int64_t left = p.columns - column;
      // The caller's side lies in rows too far apart for the hardware to see a stream.
      for (std::int64_t i = kTransposeBlock; i < 2 * kTransposeBlock; ++i) {
        if (p.from_stride > p.to_stride)
          __builtin_prefetch(p.from + (row + i) * p.from_stride + column);
        else
          __builtin_prefetch(p.to + (column + i) * p.to_stride + row, 1);
      }
      transpose_block(p.from + row * p.from_stride + column, p.from_stride, height,
                      left < kTransposeBlock ? left : kTransposeBlock,
                      p.to + column * p.to_stride + row, p.to_stride);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::cpu
HWY_AFTER_NAMESPACE();

#endif
