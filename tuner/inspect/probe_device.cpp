// SPDX-License-Identifier: Apache-2.0
#include "tuner/inspect/probe_device.hpp"

#include "cuda/device.hpp"
#include "cuda/probe.cuh"
#include "paths.hpp"
#include "simt/device.hpp"
#include "tuner/command.hpp"

namespace rnntune::tuner {
namespace {

std::vector<simt::KernelEntry> emulated_kernels() {
  const std::span<const simt::KernelEntry> library = simt::plain_kernels();
  std::vector<simt::KernelEntry> all(library.begin(), library.end());
#define X(name) all.push_back(simt::kernel_entry("probe.cuh", #name, &name))
  X(rnntune::cuda::probe_empty);
  X(rnntune::cuda::probe_grid_barriers);
  X(rnntune::cuda::probe_grid_checked);
#undef X
  return all;
}

}  // namespace

gpu::KernelId probe_kernel(ProbeKernel kernel) {
  static const char* const names[kProbeKernels] = {
      "probe_empty",           "probe_grid_barriers",
      "probe_grid_checked",    "probe_cluster_barriers",
      "probe_cluster_checked", "probe_remote_read",
      "probe_remote_write"};
  return {kernel < kClusterBarriers ? "probe.cuh" : "probe_cluster.cuh",
          std::string("rnntune::cuda::") + names[kernel]};
}

const std::vector<cuda::KernelText>& all_probe_texts() {
  static const std::vector<cuda::KernelText> texts = [] {
    const auto library = cuda::kernel_texts(), own = cuda::probe_texts();
    std::vector<cuda::KernelText> all(library.begin(), library.end());
    all.insert(all.end(), own.begin(), own.end());
    return all;
  }();
  return texts;
}

std::shared_ptr<Device> open_probe_device(const Options& options) {
  // By its name first, for the errors of it.
  const std::string backend = open_device(options)->info().backend;
  if (backend == "simt") return simt::open_simt({.seed = options.seed}, emulated_kernels());
  if (backend != "cuda") throw BadInput("--device: expected a GPU, got " + options.device);
  const std::size_t colon = options.device.find(':');
  const int ordinal = colon == std::string::npos ? 0 : std::stoi(options.device.substr(colon + 1));
  return value_or_throw(
      cuda::open_cuda({ordinal, data_folder(), cache_folder()}, all_probe_texts()));
}

}  // namespace rnntune::tuner
