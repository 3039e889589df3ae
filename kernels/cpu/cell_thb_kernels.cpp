// SPDX-License-Identifier: Apache-2.0
// Compiles the kernels of the `cell` variant in layout [T,H,B] once per instruction set.
#include "cpu/cell_thb_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/cell_thb_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

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

#if HWY_ONCE
#include "cpu/dispatch.hpp"

namespace rnntune::cpu {

HWY_EXPORT(make_cell_thb_kernels);

CellThbKernels cell_thb_kernels(const char* isa) {
  return table_for(HWY_DISPATCH_TABLE(make_cell_thb_kernels), HWY_TARGETS, isa);
}

}  // namespace rnntune::cpu
#endif
