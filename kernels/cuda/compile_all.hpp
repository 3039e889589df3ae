// SPDX-License-Identifier: Apache-2.0
// Compiles kernels for architectures that need not be here, and says what each takes. This header
// needs none of the toolkit's.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cuda/usage.hpp"
#include "rnntune/result.hpp"

namespace rnntune::cuda {

struct ToCompile {
  gpu::KernelId kernel;
  int block_threads = 256;  // what the resident blocks are counted for
  int dynamic_shared_bytes = 0;
};

struct CompileOptions {
  std::vector<std::string> architectures;  // "sm_90"
  int threads = 0;                         // that compile at once; 0: every core there is
  std::string data_folder;                 // as in OpenOptions
  std::string cache_folder;
};

struct Compiled {
  gpu::KernelId kernel;
  std::string architecture;
  std::string error{};  // empty: it compiled
  KernelUsage usage{};
  int resident_blocks = -1;      // of a multiprocessor; -1: an architecture without known limits
  double resident_share = 0;     // of the threads that a multiprocessor can hold
  std::string resident_limit{};  // what keeps more away
  bool from_cache = false;
  double seconds = 0;
};

// Every kernel for every architecture, in that order; `done` is told of each as it ends, from one
// thread at a time. A kernel that does not compile is told so in its row. The error is that there
// is no compiler.
Result<std::vector<Compiled>> compile_all(std::span<const ToCompile> kernels,
                                          const CompileOptions& options,
                                          const std::function<void(const Compiled&)>& done);

}  // namespace rnntune::cuda
