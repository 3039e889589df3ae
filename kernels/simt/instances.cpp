// SPDX-License-Identifier: Apache-2.0
// Compiled once for each registry: RNNTUNE_SIMT_REGISTRY is its function, and RNNTUNE_DEVICE_TEXT
// the namespace that keeps its kernels apart from the others'.
#define RNNTUNE_WITH_KERNELS
#include "cuda/instances.hpp"

#include "simt/registry.hpp"

namespace rnntune::simt {

std::span<const KernelEntry> RNNTUNE_SIMT_REGISTRY() {
#define X(file, ...) kernel_entry(file, #__VA_ARGS__, &__VA_ARGS__),
  static const KernelEntry entries[] = {RNNTUNE_CUDA_INSTANCES(X)};
#undef X
  return entries;
}

}  // namespace rnntune::simt
