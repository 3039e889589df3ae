// SPDX-License-Identifier: Apache-2.0
// Kernels in which only the barrier between two tiles is missing, see tests/meson.build.
#define RNNTUNE_DEVICE_TEXT late_device_text
#include "late_pointwise_tile.cuh"
#include "simt/registry.hpp"

namespace rnntune::simt {

std::span<const KernelEntry> late_kernels() {
#define X(file, ...) kernel_entry(file, #__VA_ARGS__, &__VA_ARGS__)
  static const KernelEntry entries[] = {
      X("pointwise_tile.cuh", rnntune::cuda::transpose<float>),
      X("pointwise_tile.cuh", rnntune::cuda::pointwise_forward_tile<true>),
      X("pointwise_tile.cuh", rnntune::cuda::pointwise_backward_tile<true, true, false, false>)};
#undef X
  return entries;
}

}  // namespace rnntune::simt
