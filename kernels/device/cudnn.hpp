// SPDX-License-Identifier: Apache-2.0
// cuDNN 9 as a table of functions loaded by name: what recurrent networks need.
#pragma once

#include <cudnn.h>

#include "device/shared_library.hpp"

#define RNNTUNE_CUDNN(X)           \
  X(cudnnGetVersion)               \
  X(cudnnGetErrorString)           \
  X(cudnnGetLastErrorString)       \
  X(cudnnCreate)                   \
  X(cudnnDestroy)                  \
  X(cudnnSetStream)                \
  X(cudnnCreateTensorDescriptor)   \
  X(cudnnSetTensorNdDescriptor)    \
  X(cudnnGetTensorNdDescriptor)    \
  X(cudnnDestroyTensorDescriptor)  \
  X(cudnnCreateDropoutDescriptor)  \
  X(cudnnSetDropoutDescriptor)     \
  X(cudnnDestroyDropoutDescriptor) \
  X(cudnnDropoutGetStatesSize)     \
  X(cudnnCreateRNNDescriptor)      \
  X(cudnnSetRNNDescriptor_v8)      \
  X(cudnnDestroyRNNDescriptor)     \
  X(cudnnBuildRNNDynamic)          \
  X(cudnnCreateRNNDataDescriptor)  \
  X(cudnnSetRNNDataDescriptor)     \
  X(cudnnDestroyRNNDataDescriptor) \
  X(cudnnGetRNNWeightSpaceSize)    \
  X(cudnnGetRNNWeightParams)       \
  X(cudnnGetRNNTempSpaceSizes)     \
  X(cudnnRNNForward)               \
  X(cudnnRNNBackwardData_v8)       \
  X(cudnnRNNBackwardWeights_v8)

namespace rnntune {

struct Cudnn {
#define X(name) decltype(&::name) name = nullptr;
  RNNTUNE_CUDNN(X)
#undef X
};

// The error names a version before 9, or the first function that is missing.
Result<Cudnn> load_cudnn(const SharedLibrary& library);
Result<Cudnn> open_cudnn(std::span<const std::string> folders);

// "9.19.0".
std::string version_of(const Cudnn& cudnn);
// An error for a version before 9, whose interface is another one.
Status check_version(const Cudnn& cudnn);

}  // namespace rnntune
