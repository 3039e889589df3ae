// SPDX-License-Identifier: Apache-2.0
// cuBLASLt, the part of cuBLAS that lets a caller choose the algorithm, as a table of functions
// loaded by name.
#pragma once

#include <cublasLt.h>

#include "device/shared_library.hpp"

#define RNNTUNE_CUBLAS_LT(X)              \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtGetStatusName)                \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmul)

namespace rnntune {

struct CublasLt {
#define X(name) decltype(&::name) name = nullptr;
  RNNTUNE_CUBLAS_LT(X)
#undef X
};

Result<CublasLt> load_cublas_lt(const SharedLibrary& library);
Result<CublasLt> open_cublas_lt(std::span<const std::string> folders);

}  // namespace rnntune
