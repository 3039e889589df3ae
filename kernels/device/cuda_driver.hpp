// SPDX-License-Identifier: Apache-2.0
// The CUDA driver as a table of functions, typed by the toolkit's header and loaded by name. A test
// puts its own functions in.
#pragma once

#include <cuda.h>

#include <string_view>

#include "device/shared_library.hpp"

// cuda.h renames many of these to their newest version (cuMemAlloc to cuMemAlloc_v2). The names
// here follow it, in the member, its type and the symbol alike, so that the three always agree.
#define RNNTUNE_CUDA_DRIVER(X)                   \
  X(cuInit)                                      \
  X(cuDriverGetVersion)                          \
  X(cuGetErrorName)                              \
  X(cuGetErrorString)                            \
  X(cuDeviceGetCount)                            \
  X(cuDeviceGet)                                 \
  X(cuDeviceGetName)                             \
  X(cuDeviceTotalMem)                            \
  X(cuDeviceGetAttribute)                        \
  X(cuDevicePrimaryCtxRetain)                    \
  X(cuDevicePrimaryCtxRelease)                   \
  X(cuCtxGetCurrent)                             \
  X(cuCtxPushCurrent)                            \
  X(cuCtxPopCurrent)                             \
  X(cuMemAlloc)                                  \
  X(cuMemFree)                                   \
  X(cuMemcpyHtoDAsync)                           \
  X(cuMemcpyDtoHAsync)                           \
  X(cuMemcpyDtoDAsync)                           \
  X(cuMemsetD8Async)                             \
  X(cuMemGetAddressRange)                        \
  X(cuPointerGetAttribute)                       \
  X(cuStreamCreate)                              \
  X(cuStreamDestroy)                             \
  X(cuStreamSynchronize)                         \
  X(cuStreamWaitEvent)                           \
  X(cuStreamBeginCapture)                        \
  X(cuStreamEndCapture)                          \
  X(cuEventCreate)                               \
  X(cuEventDestroy)                              \
  X(cuEventRecord)                               \
  X(cuEventElapsedTime)                          \
  X(cuGraphInstantiateWithFlags)                 \
  X(cuGraphDestroy)                              \
  X(cuGraphExecDestroy)                          \
  X(cuGraphLaunch)                               \
  X(cuModuleLoadData)                            \
  X(cuModuleUnload)                              \
  X(cuModuleGetFunction)                         \
  X(cuFuncGetAttribute)                          \
  X(cuFuncSetAttribute)                          \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuOccupancyMaxActiveClusters)                \
  X(cuLaunchKernelEx)

namespace rnntune {

struct CudaDriver {
#define X(name) decltype(&::name) name = nullptr;
  RNNTUNE_CUDA_DRIVER(X)
#undef X
};

Result<CudaDriver> load_cuda_driver(const SharedLibrary& library);
// libcuda.so.1 of the loader's path: it belongs to the kernel module, never to a toolkit.
Result<CudaDriver> open_cuda_driver();

// The driver's name for a status ("CUDA_ERROR_INVALID_VALUE (invalid argument)").
std::string describe(const CudaDriver& driver, CUresult status);

// "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory): 1024 bytes".
Error driver_error(const CudaDriver& driver, CUresult status, std::string_view call,
                   std::string_view argument);

}  // namespace rnntune
