// SPDX-License-Identifier: Apache-2.0
// Kernels that were compiled for the host, by the name that a GPU's are compiled by.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include "device/gpu.hpp"
#include "rnntune/result.hpp"
#include "simt/thread.hpp"

namespace rnntune::simt {

struct KernelEntry {
  const char* file;
  const char* expression;
  std::size_t argument_bytes;
  void (*kernel)();  // as its own type only
  void (*call)(void (*kernel)(), const void* arguments);
};

// A kernel that takes its arguments by value, as one struct.
template <class Arguments>
struct KernelCall {
  static_assert(std::is_trivially_copyable_v<Arguments>);
  using Kernel = void (*)(Arguments);

  RNNTUNE_SIMT_UNWATCHED static void call(void (*kernel)(), const void* arguments) {
    reinterpret_cast<Kernel>(kernel)(*static_cast<const Arguments*>(arguments));
  }
};

template <class Arguments>
KernelEntry kernel_entry(const char* file, const char* expression, void (*kernel)(Arguments)) {
  return {file, expression, sizeof(Arguments), reinterpret_cast<void (*)()>(kernel),
          &KernelCall<Arguments>::call};
}

// Those of cuda/instances.hpp, and the same watched by the race checker (race.hpp); of these there
// are none in a build whose sanitizers exclude it.
std::span<const KernelEntry> plain_kernels();
std::span<const KernelEntry> checked_kernels();

// The entry of a kernel, spaces in its expression aside; not_found where there is none. Valid as
// long as the entries are.
Result<const KernelEntry*> find_kernel(std::span<const KernelEntry> entries,
                                       const gpu::KernelId& id);

}  // namespace rnntune::simt
