// SPDX-License-Identifier: Apache-2.0
// The tables of kernels of all instruction sets that this library was compiled for.
#include "cpu/dispatch.hpp"

#include "cpu/cell_kernels.hpp"
#include "cpu/cell_thb_kernels.hpp"
#include "cpu/elementwise.hpp"
#include "cpu/pointwise_kernels.hpp"

namespace rnntune::cpu {

// RNNTUNE_TARGETS(X): X(AVX3) X(AVX2) ... Each has a namespace of Highway's naming.
#define RNNTUNE_DECLARE(TARGET)                \
  namespace N_##TARGET {                       \
    CellKernels make_cell_kernels();           \
    CellThbKernels make_cell_thb_kernels();    \
    Elementwise make_elementwise();            \
    PointwiseKernels make_pointwise_kernels(); \
  }
RNNTUNE_TARGETS(RNNTUNE_DECLARE)

#define RNNTUNE_CELL(TARGET) {HWY_##TARGET, N_##TARGET::make_cell_kernels},
#define RNNTUNE_CELL_THB(TARGET) {HWY_##TARGET, N_##TARGET::make_cell_thb_kernels},
#define RNNTUNE_ELEMENTWISE(TARGET) {HWY_##TARGET, N_##TARGET::make_elementwise},
#define RNNTUNE_POINTWISE(TARGET) {HWY_##TARGET, N_##TARGET::make_pointwise_kernels},

CellKernels cell_kernels(std::string_view isa) {
  return table_of<CellKernels>({RNNTUNE_TARGETS(RNNTUNE_CELL)}, isa);
}

CellThbKernels cell_thb_kernels(std::string_view isa) {
  return table_of<CellThbKernels>({RNNTUNE_TARGETS(RNNTUNE_CELL_THB)}, isa);
}

Elementwise elementwise_kernels(std::string_view isa) {
  return table_of<Elementwise>({RNNTUNE_TARGETS(RNNTUNE_ELEMENTWISE)}, isa);
}

PointwiseKernels pointwise_kernels(std::string_view isa) {
  return table_of<PointwiseKernels>({RNNTUNE_TARGETS(RNNTUNE_POINTWISE)}, isa);
}

}  // namespace rnntune::cpu
