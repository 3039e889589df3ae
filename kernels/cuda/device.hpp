// SPDX-License-Identifier: Apache-2.0
// A CUDA GPU as a device. This header needs none of the toolkit's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/texts.hpp"
#include "rnntune/device.hpp"

namespace rnntune::cuda {

struct OpenOptions {
  int ordinal = 0;           // as the driver counts, so that CUDA_VISIBLE_DEVICES applies
  std::string data_folder;   // where wheels with libraries may be; empty: nowhere
  std::string cache_folder;  // of compiled kernels; empty: they are not kept
};

// No device is an ordinary case: the error says in one line what is missing.
Result<std::shared_ptr<Device>> open_cuda(const OpenOptions& options);
// With other kernels than the library's; the texts outlive the device.
Result<std::shared_ptr<Device>> open_cuda(const OpenOptions& options,
                                          std::span<const KernelText> texts);

// Every CUDA device there is, without a context on any; at least one, or an error as above.
Result<std::vector<DeviceInfo>> list_cuda();

}  // namespace rnntune::cuda
