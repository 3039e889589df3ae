// SPDX-License-Identifier: Apache-2.0
// cuBLAS as a table of functions loaded by name.
#pragma once

#include <cublas_v2.h>

#include "device/shared_library.hpp"

#define RNNTUNE_CUBLAS(X)  \
  X(cublasCreate_v2)       \
  X(cublasDestroy_v2)      \
  X(cublasGetStatusName)   \
  X(cublasSetMathMode)     \
  X(cublasSetStream_v2)    \
  X(cublasSetWorkspace_v2) \
  X(cublasSgemm_v2)

namespace rnntune {

struct Cublas {
#define X(name) decltype(&::name) name = nullptr;
  RNNTUNE_CUBLAS(X)
#undef X
};

Result<Cublas> load_cublas(const SharedLibrary& library);
Result<Cublas> open_cublas(std::span<const std::string> folders);

}  // namespace rnntune
