// SPDX-License-Identifier: Apache-2.0
#include "cuda/compile_all.hpp"

#include <chrono>
#include <mutex>

#include "cuda/compiler.hpp"
#include "cuda/device.hpp"
#include "cuda/parallel.hpp"

namespace rnntune::cuda {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Compiled compile_one(const Compiler& compiler, const ToCompile& wanted,
                     const std::string& architecture) {
  Compiled row{.kernel = wanted.kernel, .architecture = architecture};
  const auto start = std::chrono::steady_clock::now();
  const Result<Binary> binary = compiler.compile(wanted.kernel, architecture);
  row.seconds = seconds_since(start);
  if (!binary.ok()) {
    row.error = binary.error().message;
    return row;
  }
  row.usage = binary->usage;
  row.from_cache = binary->from_cache;
  if (const gpu::Limits* limits = limits_of(architecture)) {
    const Residency resident =
        residency(row.usage, *limits, wanted.block_threads, wanted.dynamic_shared_bytes);
    row.resident_blocks = resident.blocks;
    row.resident_share =
        double(resident.blocks) * wanted.block_threads / limits->max_threads_per_multiprocessor;
    row.resident_limit = resident.limit;
  }
  return row;
}

}  // namespace

Result<std::vector<Compiled>> compile_all(std::span<const ToCompile> kernels,
                                          const CompileOptions& options,
                                          const std::function<void(const Compiled&)>& done) {
  const Result<Nvrtc> nvrtc = open_nvrtc(cuda_library_folders(options.data_folder));
  if (!nvrtc.ok()) return unsupported("compiler: " + nvrtc.error().message);
  const Compiler compiler(*nvrtc, kernel_texts(), kernel_cache(options.cache_folder), 1);
  const std::size_t architectures = options.architectures.size();
  std::vector<Compiled> rows(kernels.size() * architectures);
  std::mutex mutex;
  in_parallel(rows.size(), thread_count(options.threads), [&](std::size_t i) {
    Compiled row =
        compile_one(compiler, kernels[i / architectures], options.architectures[i % architectures]);
    const std::lock_guard lock(mutex);
    done(row);
    rows[i] = std::move(row);
    return true;
  });
  return rows;
}

}  // namespace rnntune::cuda
