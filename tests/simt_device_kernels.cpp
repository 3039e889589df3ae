// SPDX-License-Identifier: Apache-2.0
// Compiled twice, as kernels/simt/instances.cpp is.
#include "tests/simt_device_kernels.hpp"

#include "tests/simt_kernels.cuh"

#define RNNTUNE_TEST_KERNELS(X)                                                  \
  X("simt_kernels.cuh", rnntune::cuda::scale_add)                                \
  X("simt_kernels.cuh", rnntune::cuda::strided)                                  \
  X("simt_kernels.cuh", rnntune::cuda::double_write)                             \
  X("simt_kernels.cuh", rnntune::cuda::reverse_warp<rnntune::cuda::Fault::none>) \
  X("simt_kernels.cuh", rnntune::cuda::ring<rnntune::cuda::Fault::none>)         \
  X("simt_kernels.cuh", rnntune::cuda::tiled_gemm<8, rnntune::cuda::Fault::none>)

namespace rnntune::simt {

std::span<const KernelEntry> RNNTUNE_SIMT_REGISTRY() {
#define X(file, ...) kernel_entry(file, #__VA_ARGS__, &__VA_ARGS__),
  static const KernelEntry entries[] = {RNNTUNE_TEST_KERNELS(X)};
#undef X
  return entries;
}

}  // namespace rnntune::simt
