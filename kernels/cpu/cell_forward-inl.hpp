// SPDX-License-Identifier: Apache-2.0
// Forward of the `cell` variant: the recurrent GEMM with the gate arithmetic in its epilogue.
// Included once per target.
//
// A register tile holds rows x 4 vectors: all gates of V units of some samples. Weights stream from
// L2 (packed, so one panel is contiguous), h or x is broadcast from L1. Per tile row and unit: 8 *
// depth FLOPs, 4 * depth bytes of weights shared by all rows of the tile; bound by FMA throughput
// once a tile has 6 rows, by L2 bandwidth below 3.

#if defined(RNNTUNE_CPU_CELL_FORWARD_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef RNNTUNE_CPU_CELL_FORWARD_INL_HPP
#undef RNNTUNE_CPU_CELL_FORWARD_INL_HPP
#else
#define RNNTUNE_CPU_CELL_FORWARD_INL_HPP
#endif

#include "cpu/activations-inl.hpp"
#include "cpu/cell_kernels.hpp"
#include "cpu/microkernel-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rnntune::cpu {
namespace HWY_NAMESPACE {

#include "cell/lstm-inl.hpp"

HWY_INLINE LstmGates<V> load_gates(const float* row) {
  const F f;
  return {hn::LoadU(f, row), hn::LoadU(f, row + lanes()), hn::LoadU(f, row + 2 * lanes()),
          hn::LoadU(f, row + 3 * lanes())};
}

HWY_INLINE void store_gates(const LstmGates<V>& gates, float* row) {
  const F f;
  hn::StoreU(gates.i, f, row);
  hn::StoreU(gates.f, f, row + lanes());
  hn::StoreU(gates.g, f, row + 2 * lanes());
  hn::StoreU(gates.o, f, row + 3 * lanes());
}

// The cell of one row, on the pre-activations that lie in its gates.
template <Epilogue kEpilogue>
HWY_INLINE void finish_row(const ForwardPanel& p, std::int64_t row) {
  const F f;
  float* gates_row = p.gates + row * 4 * lanes();
  const LstmGates<V> pre = load_gates(gates_row);
  const LstmGates<V> gates = lstm_activate<Math>(pre.i, pre.f, pre.g, pre.o);
  if constexpr (kEpilogue == Epilogue::recompute) {
    store_gates(gates, gates_row);
    hn::StoreU(Math::tanh(hn::LoadU(f, p.c + row * lanes())), f, p.tanh_c + row * lanes());
    return;
  }
  const LstmState<V> state = lstm_forward<Math>(gates, hn::LoadU(f, p.c_before + row * lanes()));
  hn::StoreU(state.c, f, p.c + row * lanes());
  store_some(state.h, p.units, p.y + row * p.ldy);
  if constexpr (kEpilogue == Epilogue::train) {
    store_gates(gates, gates_row);
    hn::StoreU(state.tanh_c, f, p.tanh_c + row * lanes());
  }
}

struct ForwardRun {
  const ForwardPanel& panel;
  mutable Prefetch prefetch;
};

template <int kRows>
struct ForwardTile {
  static HWY_INLINE void run(const ForwardRun& run, std::int64_t row) {
    const F f;
    const ForwardPanel& p = run.panel;
    float* gates = p.gates + row * 4 * lanes();
    V acc[kRows][4];
    clear(acc);
    PartialSums<kRows, 4> sums;
    for (const Term* term : {&p.x, &p.h})
      multiply_deep<kRows, 4>({term->a + row * term->lda, term->lda, 1, term->w, 4 * lanes()},
                              term->depth, acc, sums, run.prefetch);
    sums.add_to(acc);
    RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r) RNNTUNE_UNROLL for (int v = 0; v < 4; ++v) {
      float* at = gates + (r * 4 + v) * lanes();
      hn::StoreU(acc[r][v] + hn::LoadU(f, p.bias ? p.bias + v * lanes() : at), f, at);
    }
    if (p.epilogue == Epilogue::train) finish<Epilogue::train>(p, row);
    if (p.epilogue == Epilogue::infer) finish<Epilogue::infer>(p, row);
    if (p.epilogue == Epilogue::recompute) finish<Epilogue::recompute>(p, row);
  }

  template <Epilogue kEpilogue>
  static HWY_INLINE void finish(const ForwardPanel& p, std::int64_t row) {
    for (std::int64_t r = row; r < row + kRows; ++r) finish_row<kEpilogue>(p, r);
  }
};

HWY_NOINLINE void forward_rows(const ForwardPanel& p) {
  constexpr int kMost = kMaxRows<4>;
  const int most = p.tile_rows > 0 && p.tile_rows < kMost ? p.tile_rows : kMost;
  const std::int64_t tiles = (p.rows + most - 1) / most;
  const ForwardRun run{p, spread(p.ahead, tiles, p.x.depth + p.h.depth)};
  run_tiles<ForwardTile, kMost>(p.rows, most, run);
}

// In stretches; the pre-activations wait in gates.
HWY_INLINE void forward_stretches(const ForwardPanel& p) {
  const std::int64_t stretch = kStretchFloats / (4 * lanes()), depth = p.x.depth + p.h.depth;
  ForwardPanel part = p;
  part.h.depth = 0;
  part.epilogue = Epilogue::none;
  const Term terms[] = {p.x, p.h};
  for (std::int64_t done = 0; const Term& term : terms) {
    for (std::int64_t k = 0; k < term.depth; k += stretch) {
      part.x = {term.a + k, term.lda, term.w + k * 4 * lanes(),
                term.depth - k < stretch ? term.depth - k : stretch};
      done += part.x.depth;
      const bool last = done == depth;
      if (last) part.epilogue = p.epilogue;
      if (p.ahead.floats > 0)
        part.ahead = {last ? p.ahead.at : part.x.w + part.x.depth * 4 * lanes(), kStretchFloats};
      forward_rows(part);
      part.bias = nullptr;
    }
  }
}

HWY_NOINLINE void forward(const ForwardPanel& p) {
  if constexpr (kStretches) {
    const std::int64_t floats = (p.x.depth + p.h.depth) * 4 * lanes();
    if (floats > kStretchFloats && p.rows > kMaxRows<4>) return forward_stretches(p);
  }
  forward_rows(p);
}

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::cpu
HWY_AFTER_NAMESPACE();

#endif
