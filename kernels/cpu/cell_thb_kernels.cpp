// SPDX-License-Identifier: Apache-2.0
// The kernels of the `cell` variant in layout [T,H,B] on one instruction set (cpu/target.hpp).
#include "cpu/cell_thb_kernels.hpp"

#include "cpu/target.hpp"  // first of what includes Highway

#define RNNTUNE_CELL_INLINE HWY_INLINE
#include "cpu/cell_thb-inl.hpp"
#include "cpu/cell_thb_weights-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rnntune::cpu {
namespace HWY_NAMESPACE {

CellThbKernels make_cell_thb_kernels() {
  return {.lanes = lanes(),
          .forward_units = {0, kThbUnits<1>, kThbUnits<2>, kThbUnits<3>, kThbUnits<4>},
          .backward_units = {0, kMaxRows<1>, kMaxRows<2>, kMaxRows<3>, kMaxRows<4>},
          .forward = thb_forward,
          .backward = thb_backward,
          .weights = thb_weights,
          .bias = thb_bias,
          .pack_forward = thb_pack_forward,
          .pack_backward = thb_pack_backward,
          .transpose = thb_transpose};
}

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::cpu
HWY_AFTER_NAMESPACE();
