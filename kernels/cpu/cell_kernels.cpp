// SPDX-License-Identifier: Apache-2.0
// The kernels of the `cell` variant on one instruction set (cpu/target.hpp).
#include "cpu/cell_kernels.hpp"

#include "cpu/target.hpp"  // first of what includes Highway

#define RNNTUNE_CELL_INLINE HWY_INLINE
#include "cpu/cell_backward-inl.hpp"
#include "cpu/cell_forward-inl.hpp"
#include "cpu/cell_weights-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rnntune::cpu {
namespace HWY_NAMESPACE {

CellKernels make_cell_kernels() {
  return {.lanes = lanes(),
          .tile_rows = kMaxRows<4>,
          .backward_tile_rows = {0, kMaxRows<1>, kMaxRows<2>, kMaxRows<3>, kMaxRows<4>},
          .forward = forward,
          .backward = backward,
          .weights = weights,
          .weights_narrow = weights_narrow,
          .pack = pack};
}

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::cpu
HWY_AFTER_NAMESPACE();
