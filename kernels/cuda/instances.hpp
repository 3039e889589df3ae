// SPDX-License-Identifier: Apache-2.0
// Every instantiation of a kernel that a plan may ask for: X(file, template with its arguments).
// The arguments may hold commas, so that X takes the rest of its own. The GPU's compiler, the
// emulator and the tests take their lists from here. A new file is included below and named in
// cuda_text of meson.build; groups of rows may be macros of X of their own. Who defines
// RNNTUNE_WITH_KERNELS gets the kernels too.
#pragma once

#include <vector>

#include "device/gpu.hpp"

#if defined(RNNTUNE_WITH_KERNELS)
#include "cuda/bias_gradient.cuh"
#include "cuda/operations.cuh"
#include "cuda/pointwise.cuh"
#include "cuda/pointwise_tile.cuh"
#endif

// clang-format off
#define RNNTUNE_CUDA_INSTANCES(X)                                                         \
  X("bias_gradient.cuh", rnntune::cuda::bias_gradient_tbh<false>)                         \
  X("bias_gradient.cuh", rnntune::cuda::bias_gradient_tbh<true>)                          \
  X("bias_gradient.cuh", rnntune::cuda::bias_gradient_thb<false>)                         \
  X("bias_gradient.cuh", rnntune::cuda::bias_gradient_thb<true>)                          \
  X("operations.cuh", rnntune::cuda::apply<rnntune::cuda::Add>)                           \
  X("operations.cuh", rnntune::cuda::apply<rnntune::cuda::Multiply>)                      \
  X("operations.cuh", rnntune::cuda::apply<rnntune::cuda::MultiplyAdd>)                   \
  X("operations.cuh", rnntune::cuda::apply<rnntune::cuda::Sigmoid>)                       \
  X("operations.cuh", rnntune::cuda::apply<rnntune::cuda::SigmoidBackward>)               \
  X("operations.cuh", rnntune::cuda::apply<rnntune::cuda::Tanh>)                          \
  X("operations.cuh", rnntune::cuda::apply<rnntune::cuda::TanhBackward>)                  \
  X("pointwise.cuh", rnntune::cuda::pointwise_forward<1, false>)                          \
  X("pointwise.cuh", rnntune::cuda::pointwise_forward<1, true>)                           \
  X("pointwise.cuh", rnntune::cuda::pointwise_forward<4, false>)                          \
  X("pointwise.cuh", rnntune::cuda::pointwise_forward<4, true>)                           \
  X("pointwise.cuh", rnntune::cuda::pointwise_backward<1, false>)                         \
  X("pointwise.cuh", rnntune::cuda::pointwise_backward<1, true>)                          \
  X("pointwise.cuh", rnntune::cuda::pointwise_backward<4, false>)                         \
  X("pointwise.cuh", rnntune::cuda::pointwise_backward<4, true>)                          \
  X("pointwise_tile.cuh", rnntune::cuda::pointwise_forward_tile<false>)                   \
  X("pointwise_tile.cuh", rnntune::cuda::pointwise_forward_tile<true>)                    \
  X("pointwise_tile.cuh", rnntune::cuda::pointwise_backward_tile<false, false, true, false>) \
  X("pointwise_tile.cuh", rnntune::cuda::pointwise_backward_tile<false, false, true, true>)  \
  X("pointwise_tile.cuh", rnntune::cuda::pointwise_backward_tile<false, true, true, false>)  \
  X("pointwise_tile.cuh", rnntune::cuda::pointwise_backward_tile<false, true, true, true>)   \
  X("pointwise_tile.cuh", rnntune::cuda::pointwise_backward_tile<true, false, true, false>)  \
  X("pointwise_tile.cuh", rnntune::cuda::pointwise_backward_tile<true, false, true, true>)   \
  X("pointwise_tile.cuh", rnntune::cuda::pointwise_backward_tile<true, true, false, false>)  \
  X("pointwise_tile.cuh", rnntune::cuda::pointwise_backward_tile<true, true, false, true>)   \
  X("pointwise_tile.cuh", rnntune::cuda::pointwise_backward_tile<true, true, true, false>)   \
  X("pointwise_tile.cuh", rnntune::cuda::pointwise_backward_tile<true, true, true, true>)    \
  X("pointwise_tile.cuh", rnntune::cuda::transpose<float>)
// clang-format on

namespace rnntune::cuda {

inline std::vector<gpu::KernelId> kernel_instances() {
#define X(file, ...) gpu::KernelId{file, #__VA_ARGS__},
  return {RNNTUNE_CUDA_INSTANCES(X)};
#undef X
}

}  // namespace rnntune::cuda
