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
#include "cuda/elementwise.cuh"
#endif

#define RNNTUNE_CUDA_INSTANCES(X)                  \
  X("elementwise.cuh", rnntune::cuda::fill<float>) \
  X("elementwise.cuh", rnntune::cuda::copy_rows<float>)

namespace rnntune::cuda {

inline std::vector<gpu::KernelId> kernel_instances() {
#define X(file, ...) gpu::KernelId{file, #__VA_ARGS__},
  return {RNNTUNE_CUDA_INSTANCES(X)};
#undef X
}

}  // namespace rnntune::cuda
