// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernel.hpp"

#include "device/geometry.hpp"

namespace rnntune::cuda {
namespace {

std::string text(const gpu::Extent3& e) {
  return std::to_string(e.x) + " x " + std::to_string(e.y) + " x " + std::to_string(e.z);
}

// A launch as the driver takes it; not to be copied, since it points into itself.
struct DriverLaunch {
  CUlaunchAttribute attributes[2] = {};
  CUlaunchConfig config = {};

  DriverLaunch(const gpu::LaunchShape& shape, CUstream stream) {
    config.gridDimX = shape.grid.x;
    config.gridDimY = shape.grid.y;
    config.gridDimZ = shape.grid.z;
    config.blockDimX = shape.block.x;
    config.blockDimY = shape.block.y;
    config.blockDimZ = shape.block.z;
    config.sharedMemBytes = shape.shared_bytes;
    config.hStream = stream;
    config.attrs = attributes;
    if (shape.cooperative) {
      CUlaunchAttribute& attribute = attributes[config.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
      attribute.value.cooperative = 1;
    }
    if (shape.cluster.x * shape.cluster.y * shape.cluster.z > 1) {
      CUlaunchAttribute& attribute = attributes[config.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attribute.value.clusterDim.x = shape.cluster.x;
      attribute.value.clusterDim.y = shape.cluster.y;
      attribute.value.clusterDim.z = shape.cluster.z;
    }
  }
  DriverLaunch(const DriverLaunch&) = delete;
};

}  // namespace

Result<std::shared_ptr<const gpu::Kernel>> CudaKernel::load(std::shared_ptr<const Context> context,
                                                            const gpu::KernelId& id,
                                                            const Binary& binary) {
  const std::shared_ptr<CudaKernel> kernel(new CudaKernel(std::move(context), id));
  if (Status status = kernel->load(binary); !status.ok()) return status.error();
  return std::shared_ptr<const gpu::Kernel>(kernel);
}

CudaKernel::~CudaKernel() {
  if (module_ == nullptr) return;
  context_->release([&] { context_->driver().cuModuleUnload(module_); });
}

Status CudaKernel::load(const Binary& binary) {
  const CudaDriver& driver = context_->driver();
  const auto name = [&] { return "kernel " + id_.expression; };
  Status status = context_->run("cuModuleLoadData", name, [&] {
    return driver.cuModuleLoadData(&module_, binary.cubin.data());
  });
  if (!status.ok()) return status;
  status = context_->run("cuModuleGetFunction", name, [&] {
    return driver.cuModuleGetFunction(&function_, module_, binary.lowered_name.c_str());
  });
  if (!status.ok()) return status;
  if (status = read_resources(); !status.ok()) return status;
  // Once, for every launch: beyond 48 KiB a kernel must be allowed to.
  const std::int64_t dynamic =
      context_->limits().shared_bytes_per_block - resources_.static_shared_bytes;
  return context_->run("cuFuncSetAttribute", name, [&] {
    return driver.cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     int(dynamic));
  });
}

Status CudaKernel::read_resources() {
  const struct {
    CUfunction_attribute attribute;
    int& value;
    const char* name;
  } rows[] = {
      {CU_FUNC_ATTRIBUTE_NUM_REGS, resources_.registers, "NUM_REGS"},
      {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, resources_.local_bytes, "LOCAL_SIZE_BYTES"},
      {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, resources_.static_shared_bytes, "SHARED_SIZE_BYTES"},
      {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, resources_.max_threads, "MAX_THREADS_PER_BLOCK"},
  };
  for (const auto& row : rows) {
    const auto argument = [&] { return row.name + (" of kernel " + id_.expression); };
    Status status = context_->run("cuFuncGetAttribute", argument, [&] {
      return context_->driver().cuFuncGetAttribute(&row.value, row.attribute, function_);
    });
    if (!status.ok()) return status;
  }
  return {};
}

// Clusters of more than 8 blocks must be asked for, and not every device has them.
Status CudaKernel::allow_cluster(const gpu::LaunchShape& shape) const {
  constexpr unsigned kPortable = 8;
  if (shape.cluster.x * shape.cluster.y * shape.cluster.z <= kPortable) return {};
  const auto argument = [&] { return "clusters of kernel " + id_.expression; };
  return context_->run("cuFuncSetAttribute", argument, [&] {
    return context_->driver().cuFuncSetAttribute(
        function_, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  });
}

Result<int> CudaKernel::resident_clusters(const gpu::LaunchShape& shape) const {
  Status status = check_geometry(shape, context_->limits(), *this);
  if (status.ok()) status = allow_cluster(shape);
  if (!status.ok()) return status.error();
  int clusters = 0;
  const DriverLaunch launch(shape, nullptr);
  const auto argument = [&] { return "kernel " + id_.expression; };
  status = context_->run("cuOccupancyMaxActiveClusters", argument, [&] {
    return context_->driver().cuOccupancyMaxActiveClusters(&clusters, function_, &launch.config);
  });
  if (!status.ok()) return status.error();
  return clusters;
}

Status CudaKernel::check(const gpu::LaunchShape& shape, std::size_t bytes) const {
  Status status = check_arguments(bytes, *this);
  if (!status.ok()) return status;
  status = check_geometry(shape, context_->limits(), *this);
  if (!status.ok() || !shape.cooperative) return status;
  int resident = 0;
  const auto argument = [&] { return "kernel " + id_.expression; };
  status = context_->run("cuOccupancyMaxActiveBlocksPerMultiprocessor", argument, [&] {
    return context_->driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &resident, function_, int(shape.block.x * shape.block.y * shape.block.z),
        shape.shared_bytes);
  });
  if (!status.ok()) return status;
  return check_resident(shape, context_->limits(), *this, resident);
}

Status CudaKernel::launch(const gpu::LaunchShape& shape, const void* arguments, std::size_t bytes,
                          CUstream stream) const {
  if (Status status = check(shape, bytes); !status.ok()) return status;
  if (Status status = allow_cluster(shape); !status.ok()) return status;
  const DriverLaunch launch(shape, stream);
  void* parameters[] = {const_cast<void*>(arguments)};
  const auto argument = [&] {
    return "kernel " + id_.expression + ", grid " + text(shape.grid) + ", block " +
           text(shape.block) + ", " + std::to_string(shape.shared_bytes) +
           " bytes of shared memory";
  };
  return context_->run("cuLaunchKernelEx", argument, [&] {
    return context_->driver().cuLaunchKernelEx(&launch.config, function_, parameters, nullptr);
  });
}

}  // namespace rnntune::cuda
