// SPDX-License-Identifier: Apache-2.0
// A compiled kernel in the context of a device.
#pragma once

#include <memory>

#include "cuda/compiler.hpp"
#include "cuda/context.hpp"

namespace rnntune::cuda {

class CudaKernel final : public gpu::Kernel {
 public:
  static Result<std::shared_ptr<const gpu::Kernel>> load(std::shared_ptr<const Context> context,
                                                         const gpu::KernelId& id,
                                                         const Binary& binary);
  ~CudaKernel() override;

  const gpu::KernelId& id() const override { return id_; }
  const gpu::KernelResources& resources() const override { return resources_; }

  // Refuses an impossible geometry before the driver sees it.
  Status launch(const gpu::LaunchShape& shape, const void* arguments, std::size_t bytes,
                CUstream stream) const;
  Result<int> resident_clusters(const gpu::LaunchShape& shape) const;

 private:
  CudaKernel(std::shared_ptr<const Context> context, const gpu::KernelId& id)
      : context_(std::move(context)), id_(id) {}
  Status load(const Binary& binary);
  Status read_resources();
  Status allow_cluster(const gpu::LaunchShape& shape) const;
  Status check(const gpu::LaunchShape& shape, std::size_t bytes) const;

  const std::shared_ptr<const Context> context_;
  const gpu::KernelId id_;
  gpu::KernelResources resources_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

}  // namespace rnntune::cuda
