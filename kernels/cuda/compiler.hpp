// SPDX-License-Identifier: Apache-2.0
// Compiles the embedded kernel text to machine code of one architecture with NVRTC, and keeps the
// results on disk.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cuda/texts.hpp"
#include "cuda/usage.hpp"
#include "device/gpu.hpp"
#include "device/nvrtc.hpp"

namespace rnntune::cuda {

struct Binary {
  std::string lowered_name;  // the kernel's symbol in the binary
  std::string cubin;
  std::string log;  // of the compiler
  KernelUsage usage;
  bool from_cache = false;
};

// Where compiled kernels are kept below the cache folder; empty for none.
std::string kernel_cache(const std::string& cache_folder);

class Compiler {
 public:
  // Every text is a header that a kernel's file may include by its name. `cache_folder` is made
  // when needed; empty: nothing is kept. `threads` compile at once; 0: every core there is.
  Compiler(Nvrtc nvrtc, std::span<const KernelText> texts, std::string cache_folder,
           int threads = 0);

  // `architecture` is one of silicon ("sm_90"). The error names the kernel and the options, and
  // carries the compiler's log.
  Result<Binary> compile(const gpu::KernelId& kernel, const std::string& architecture) const;

  // In the order asked for. The first failure wins; what had not begun by then is left.
  Result<std::vector<Binary>> compile(std::span<const gpu::KernelId> kernels,
                                      const std::string& architecture) const;

 private:
  Result<Binary> compile_text(const gpu::KernelId& kernel,
                              const std::vector<std::string>& options) const;

  const Nvrtc nvrtc_;
  const std::span<const KernelText> texts_;
  const std::string cache_folder_;
  const int threads_;
  std::string identity_;  // of compiler and texts, as far as results depend on them
};

}  // namespace rnntune::cuda
