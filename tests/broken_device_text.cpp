// SPDX-License-Identifier: Apache-2.0
// The kernels that tests/meson.build breaks, under the names of those that are right.
#define RNNTUNE_DEVICE_TEXT broken_device_text
#include "broken_bias_gradient.cuh"
#include "broken_operations.cuh"
#include "broken_pointwise.cuh"
#include "broken_pointwise_tile.cuh"
#include "broken_simt_kernels.cuh"
#include "simt/registry.hpp"

namespace rnntune::simt {

std::span<const KernelEntry> broken_kernels() {
#define X(file, ...) kernel_entry(file, #__VA_ARGS__, &__VA_ARGS__)
  static const KernelEntry entries[] = {
      X("bias_gradient.cuh", rnntune::cuda::bias_gradient_tbh<false>),
      X("bias_gradient.cuh", rnntune::cuda::bias_gradient_thb<false>),
      X("operations.cuh", rnntune::cuda::apply<rnntune::cuda::Add>),
      X("pointwise.cuh", rnntune::cuda::pointwise_forward<1, false>),
      X("simt_kernels.cuh", rnntune::cuda::ring<rnntune::cuda::Fault::none>),
      X("pointwise_tile.cuh", rnntune::cuda::transpose<float>),
      X("pointwise_tile.cuh", rnntune::cuda::pointwise_forward_tile<true>),
      X("pointwise_tile.cuh", rnntune::cuda::pointwise_backward_tile<true, false, true, false>)};
#undef X
  return entries;
}

}  // namespace rnntune::simt
