// SPDX-License-Identifier: Apache-2.0
// A device that has the kernels of the probe beside those of the library.
#pragma once

#include <memory>
#include <vector>

#include "cuda/texts.hpp"
#include "device/gpu.hpp"
#include "tuner/options.hpp"

namespace rnntune::cuda {

// Embedded by tools/embed_text.py.
std::span<const KernelText> probe_texts();

}  // namespace rnntune::cuda

namespace rnntune::tuner {

enum ProbeKernel {
  kEmpty,
  kGridBarriers,
  kGridChecked,
  kClusterBarriers,  // from here on for clusters only
  kClusterChecked,
  kRemoteRead,
  kRemoteWrite,
  kProbeKernels
};
gpu::KernelId probe_kernel(ProbeKernel kernel);

// Every text that a kernel of the probe is compiled from.
const std::vector<cuda::KernelText>& all_probe_texts();

// The device that options name. Throws BadInput where there is none, and for one that is no GPU.
std::shared_ptr<Device> open_probe_device(const Options& options);

}  // namespace rnntune::tuner
