// SPDX-License-Identifier: Apache-2.0
// Compiles the kernels of the `cell` variant once per instruction set.
#include "cpu/cell_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/cell_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

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

#if HWY_ONCE
#include "cpu/dispatch.hpp"

namespace rnntune::cpu {

HWY_EXPORT(make_cell_kernels);

CellKernels cell_kernels(const char* isa) {
  return table_for(HWY_DISPATCH_TABLE(make_cell_kernels), HWY_TARGETS, isa);
}

}  // namespace rnntune::cpu
#endif
