// SPDX-License-Identifier: Apache-2.0
// Forward and backward data of the `cell` variant in layout [T,H,B]. Included once per target.
//
// Lanes are samples, so all gates of a unit lie in registers side by side whatever H is, and the
// cell runs on whole vectors. A register tile holds units x vectors of a panel of samples; its
// weights are broadcast from [k][rows], contiguous, and the panel's rows [k][W] stream from L1 or
// L2. FLOPs and bytes per tile and k: 2 * rows * W FLOPs, 4 * rows bytes of weights, 4 * W of
// activations; bound by FMA throughput once a tile has 8 to 10 accumulators.

#if defined(RNNTUNE_CPU_CELL_THB_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef RNNTUNE_CPU_CELL_THB_INL_HPP
#undef RNNTUNE_CPU_CELL_THB_INL_HPP
#else
#define RNNTUNE_CPU_CELL_THB_INL_HPP
#endif

#include "cpu/activations-inl.hpp"
#include "cpu/cell_thb_kernels.hpp"
#include "cpu/microkernel-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rnntune::cpu {
namespace HWY_NAMESPACE {

#include "cell/lstm-inl.hpp"

// Units of a forward tile: four rows each, in the registers that so many vectors leave.
template <int kVectors>
constexpr int kThbUnits = kManyRegisters ? (kVectors == 1   ? 4
                                            : kVectors == 2 ? 3
                                            : kVectors == 3 ? 2
                                                            : 1)
                                         : (kVectors == 1   ? 3
                                            : kVectors == 4 ? 0
                                                            : 1);

// Gate g of the unit whose first row is `unit`; W is the row stride.
HWY_INLINE LstmGates<V> thb_load_gates(const float* unit, std::int64_t width) {
  const F f;
  return {hn::LoadU(f, unit), hn::LoadU(f, unit + width), hn::LoadU(f, unit + 2 * width),
          hn::LoadU(f, unit + 3 * width)};
}

HWY_INLINE void thb_store_gates(const LstmGates<V>& gates, float* unit, std::int64_t width) {
  const F f;
  hn::StoreU(gates.i, f, unit);
  hn::StoreU(gates.f, f, unit + width);
  hn::StoreU(gates.g, f, unit + 2 * width);
  hn::StoreU(gates.o, f, unit + 3 * width);
}

// The cell of one vector of samples of a unit, on the pre-activations that lie in its gates. `at`
// is the vector's place in arrays of units.
template <Epilogue kEpilogue>
HWY_INLINE void thb_cell(const ThbForward& p, float* unit, std::int64_t at, std::int64_t width) {
  const F f;
  const LstmGates<V> pre = thb_load_gates(unit, width);
  const LstmGates<V> gates = lstm_activate<Math>(pre.i, pre.f, pre.g, pre.o);
  if constexpr (kEpilogue == Epilogue::recompute) {
    thb_store_gates(gates, unit, width);
    hn::StoreU(Math::tanh(hn::LoadU(f, p.c + at)), f, p.tanh_c + at);
    return;
  }
  const LstmState<V> state = lstm_forward<Math>(gates, hn::LoadU(f, p.c_before + at));
  hn::StoreU(state.c, f, p.c + at);
  hn::StoreU(state.h, f, p.h_out + at);
  if constexpr (kEpilogue == Epilogue::train) {
    thb_store_gates(gates, unit, width);
    hn::StoreU(state.tanh_c, f, p.tanh_c + at);
  }
}

template <Epilogue kEpilogue>
HWY_NOINLINE void thb_cells(const ThbForward& p) {
  const std::int64_t width = p.vectors * lanes();
  for (int unit = 0; unit < p.units; ++unit)
    for (int v = 0; v < p.vectors; ++v)
      thb_cell<kEpilogue>(p, p.gates + unit * 4 * width + v * lanes(), unit * width + v * lanes(),
                          width);
}

template <int kVectors>
struct ThbForwardTiles {
  template <int kUnits>
  struct Tile {
    static HWY_INLINE void run(const ThbForward& p, std::int64_t) {
      const F f;
      constexpr int kRows = 4 * kUnits;
      const std::int64_t width = kVectors * lanes();
      V acc[kRows][kVectors];
      if (p.bias) {
        RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r)
            RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::Set(f, p.bias[r]);
      } else {
        RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r)
            RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v) acc[r][v] =
                hn::LoadU(f, p.gates + r * width + v * lanes());
      }
      Prefetch prefetch = spread(p.ahead, 1, p.x.depth + p.h.depth);
      PartialSums<kRows, kVectors> sums;
      for (const auto* term : {&p.x, &p.h})
        multiply_deep<kRows, kVectors>({term->w, 1, kRows, term->b, width}, term->depth, acc, sums,
                                       prefetch);
      sums.add_to(acc);
      RNNTUNE_UNROLL for (int r = 0; r < kRows; ++r)
          RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v)
              hn::StoreU(acc[r][v], f, p.gates + r * width + v * lanes());
      if (p.epilogue == Epilogue::train) thb_cells<Epilogue::train>(p);
      if (p.epilogue == Epilogue::infer) thb_cells<Epilogue::infer>(p);
      if (p.epilogue == Epilogue::recompute) thb_cells<Epilogue::recompute>(p);
    }
  };
};

template <int kVectors>
HWY_NOINLINE void thb_forward_panel(const ThbForward& p) {
  run_tile<ThbForwardTiles<kVectors>::template Tile, kThbUnits<kVectors>>(p.units, p, 0);
}

HWY_NOINLINE void thb_forward(const ThbForward& p) {
  constexpr void (*panels[])(const ThbForward&) = {thb_forward_panel<1>, thb_forward_panel<2>,
                                                   thb_forward_panel<3>, thb_forward_panel<4>};
  panels[p.vectors - 1](p);
}

// The pointwise backward of a tile; dh_rec is [units][W].
HWY_NOINLINE void thb_cells_backward(const ThbBackward& p, const float* dh_rec) {
  const F f;
  const std::int64_t width = p.vectors * lanes();
  for (int unit = 0; unit < p.units; ++unit) {
    for (int v = 0; v < p.vectors; ++v) {
      const std::int64_t at = unit * width + v * lanes();
      float* gates = p.gates + unit * 4 * width + v * lanes();
      const V dh = hn::LoadU(f, dh_rec + at) + hn::LoadU(f, p.dy + at);
      V dc = hn::LoadU(f, p.dc + at);
      const LstmGates<V> d =
          lstm_backward<Math>(thb_load_gates(gates, width), hn::LoadU(f, p.c_before + at),
                              hn::LoadU(f, p.tanh_c + at), dh, dc);
      hn::StoreU(dc, f, p.dc + at);
      thb_store_gates(d, gates, width);
    }
  }
}

template <int kVectors>
struct ThbBackwardTiles {
  template <int kUnits>
  struct Tile {
    static HWY_INLINE void run(const ThbBackward& p, std::int64_t) {
      const F f;
      const std::int64_t width = kVectors * lanes();
      V acc[kUnits][kVectors];
      clear(acc);
      Prefetch prefetch = spread(p.ahead, 1, p.depth);
      PartialSums<kUnits, kVectors> sums;
      multiply_deep<kUnits, kVectors>({p.w, 1, kUnits, p.dgates, width}, p.depth, acc, sums,
                                      prefetch);
      sums.add_to(acc);
      if (p.start) {
        RNNTUNE_UNROLL for (int r = 0; r < kUnits; ++r)
            RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v) acc[r][v] =
                acc[r][v] + hn::LoadU(f, p.start + r * width + v * lanes());
      }
      HWY_ALIGN float dh[kUnits * kVectors * HWY_MAX_BYTES / sizeof(float)];
      float* out = p.out ? p.out : dh;
      RNNTUNE_UNROLL for (int r = 0; r < kUnits; ++r)
          RNNTUNE_UNROLL for (int v = 0; v < kVectors; ++v)
              hn::StoreU(acc[r][v], f, out + r * width + v * lanes());
      if (p.out == nullptr) thb_cells_backward(p, dh);
    }
  };
};

template <int kVectors>
HWY_NOINLINE void thb_backward_panel(const ThbBackward& p) {
  run_tile<ThbBackwardTiles<kVectors>::template Tile, kMaxRows<kVectors>>(p.units, p, 0);
}

HWY_NOINLINE void thb_backward(const ThbBackward& p) {
  constexpr void (*panels[])(const ThbBackward&) = {thb_backward_panel<1>, thb_backward_panel<2>,
                                                    thb_backward_panel<3>, thb_backward_panel<4>};
  panels[p.vectors - 1](p);
}

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::cpu
HWY_AFTER_NAMESPACE();

#endif
