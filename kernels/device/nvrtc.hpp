// SPDX-License-Identifier: Apache-2.0
// NVRTC, the run-time compiler of CUDA C++, as a table of functions loaded by name.
#pragma once

#include <nvrtc.h>

#include "device/shared_library.hpp"

#define RNNTUNE_NVRTC(X)    \
  X(nvrtcVersion)           \
  X(nvrtcGetErrorString)    \
  X(nvrtcCreateProgram)     \
  X(nvrtcDestroyProgram)    \
  X(nvrtcAddNameExpression) \
  X(nvrtcCompileProgram)    \
  X(nvrtcGetProgramLogSize) \
  X(nvrtcGetProgramLog)     \
  X(nvrtcGetLoweredName)    \
  X(nvrtcGetCUBINSize)      \
  X(nvrtcGetCUBIN)

namespace rnntune {

struct Nvrtc {
#define X(name) decltype(&::name) name = nullptr;
  RNNTUNE_NVRTC(X)
#undef X
};

Result<Nvrtc> load_nvrtc(const SharedLibrary& library);
Result<Nvrtc> open_nvrtc(std::span<const std::string> folders);

}  // namespace rnntune
