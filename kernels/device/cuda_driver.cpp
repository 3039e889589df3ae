// SPDX-License-Identifier: Apache-2.0
#include "device/cuda_driver.hpp"

namespace rnntune {
namespace {

// Twice, so that cuda.h's own renaming of the name comes first.
#define RNNTUNE_TEXT_OF(name) #name
#define RNNTUNE_TEXT(name) RNNTUNE_TEXT_OF(name)

ErrorCode code_of(CUresult status) {
  switch (status) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return ErrorCode::out_of_memory;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_STUB_LIBRARY:
      return ErrorCode::not_found;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::internal;
  }
}

}  // namespace

Result<CudaDriver> load_cuda_driver(const SharedLibrary& library) {
  CudaDriver driver;
  std::string missing;
#define X(name) load_symbol(library, RNNTUNE_TEXT(name), driver.name, missing);
  RNNTUNE_CUDA_DRIVER(X)
#undef X
  if (Status status = all_loaded(library, missing); !status.ok()) return status.error();
  return driver;
}

Result<CudaDriver> open_cuda_driver() {
  const std::string file = "libcuda.so.1";
  const Result<SharedLibrary> library = SharedLibrary::open({&file, 1}, {});
  if (!library.ok()) return library.error();
  return load_cuda_driver(*library);
}

std::string describe(const CudaDriver& driver, CUresult status) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName(status, &name) != CUDA_SUCCESS || name == nullptr) {
    return "CUDA error " + std::to_string(int(status));
  }
  if (driver.cuGetErrorString(status, &text) != CUDA_SUCCESS || text == nullptr) return name;
  return std::string(name) + " (" + text + ")";
}

Error driver_error(const CudaDriver& driver, CUresult status, std::string_view call,
                   std::string_view argument) {
  std::string message = std::string(call) + ": " + describe(driver, status);
  if (!argument.empty()) message += ": " + std::string(argument);
  return {code_of(status), message};
}

}  // namespace rnntune
