// SPDX-License-Identifier: Apache-2.0
// What a compiled kernel takes of a multiprocessor. This header needs none of the toolkit's.
#pragma once

#include <string>
#include <string_view>

#include "device/gpu.hpp"

namespace rnntune::cuda {

// What ptxas reports of a kernel. Registers and spills differ between compilers for the same text:
// these are of the binary beside them.
struct KernelUsage {
  int registers = 0;
  int barriers = 0;
  int static_shared_bytes = 0;
  int stack_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
};

// The lines of `log` that ptxas wrote with -v for the entry function of this lowered name.
KernelUsage parse_ptxas_log(std::string_view log, std::string_view lowered_name);

// Limits of an architecture ("sm_90"), the number of multiprocessors left 0; null for one that is
// not in the table.
const gpu::Limits* limits_of(std::string_view architecture);

// What the driver keeps of each block's shared memory.
constexpr int reserved_shared_bytes(int compute_capability) {
  return compute_capability >= 80 ? 1024 : 0;
}

struct Residency {
  int blocks = 0;     // 0: not even one fits
  std::string limit;  // what keeps more away: "registers", "threads", "shared memory"
};

// Blocks of `threads` threads that a multiprocessor holds at once, by the toolkit's own rules of
// allocation.
Residency residency(const KernelUsage& usage, const gpu::Limits& limits, int threads,
                    int dynamic_shared_bytes);

}  // namespace rnntune::cuda
