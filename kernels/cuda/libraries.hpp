// SPDX-License-Identifier: Apache-2.0
// What a CUDA device is made of. A test brings its own functions and kernels.
#pragma once

#include <functional>

#include "cuda/device.hpp"
#include "cuda/texts.hpp"
#include "device/cublas.hpp"
#include "device/cublas_lt.hpp"
#include "device/cuda_driver.hpp"
#include "device/gpu.hpp"
#include "device/nvrtc.hpp"

namespace rnntune::cuda {

struct Libraries {
  CudaDriver driver;
  std::function<Result<Nvrtc>()> nvrtc;         // opened when a kernel is first built
  std::function<Result<Cublas>()> cublas;       // opened when a product is first prepared or run
  std::function<Result<CublasLt>()> cublas_lt;  // opened when another choice than 0 is prepared
};

Result<std::vector<DeviceInfo>> list_cuda(const CudaDriver& driver);

Result<std::shared_ptr<gpu::GpuDevice>> open_cuda(const Libraries& libraries,
                                                  const OpenOptions& options,
                                                  std::span<const KernelText> texts);

}  // namespace rnntune::cuda
