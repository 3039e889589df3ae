// SPDX-License-Identifier: Apache-2.0
// The CUDA libraries of this machine, from a toolkit or from wheels: each opens and answers what it
// can without a driver, and NVRTC compiles. What is not there is skipped; CUDA_LIBRARIES=all in the
// environment makes that a failure, for a check of wheels (docs/cuda.md).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "device/cublas.hpp"
#include "device/cuda_driver.hpp"
#include "device/nvrtc.hpp"
#include "device/shared_library.hpp"
#include "paths.hpp"

namespace rnntune {
namespace {

bool all_expected() {
  const char* value = std::getenv("CUDA_LIBRARIES");
  return value != nullptr && std::string(value) == "all";
}

#define REQUIRE_LIBRARY(library)                             \
  if (!(library).ok()) {                                     \
    if (all_expected()) FAIL() << (library).error().message; \
    GTEST_SKIP() << (library).error().message;               \
  }

Result<SharedLibrary> open(const std::vector<std::string>& files) {
  auto library = SharedLibrary::open(files, cuda_library_folders(data_folder()));
  if (library.ok()) std::printf("%s\n", library->path().c_str());
  return library;
}

// A function that is called here only.
template <class Function>
Function* function_of(const SharedLibrary& library, const char* name) {
  return reinterpret_cast<Function*>(library.symbol(name));
}

TEST(CudaLibraries, NvrtcCompilesAKernel) {
  const auto library = open({"libnvrtc.so.13", "libnvrtc.so.12"});
  REQUIRE_LIBRARY(library);
  const auto nvrtc = load_nvrtc(*library);
  ASSERT_TRUE(nvrtc.ok()) << nvrtc.error().message;
  for (const char* architecture : {"sm_80", "sm_90", "sm_120"}) {
    SCOPED_TRACE(architecture);
    nvrtcProgram program = nullptr;
    const char* source =
        "extern \"C\" __global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }";
    ASSERT_EQ(nvrtc->nvrtcCreateProgram(&program, source, "scale.cu", 0, nullptr, nullptr),
              NVRTC_SUCCESS);
    const std::string option = std::string("--gpu-architecture=") + architecture;
    const char* options[] = {option.c_str()};
    EXPECT_EQ(nvrtc->nvrtcCompileProgram(program, 1, options), NVRTC_SUCCESS);
    std::size_t bytes = 0;
    EXPECT_EQ(nvrtc->nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
    std::string binary(bytes, '\0');
    EXPECT_EQ(nvrtc->nvrtcGetCUBIN(program, binary.data()), NVRTC_SUCCESS);
    EXPECT_EQ(binary.substr(1, 3), "ELF");
    nvrtc->nvrtcDestroyProgram(&program);
  }
}

TEST(CudaLibraries, CublasLoads) {
  const auto library = open({"libcublas.so.13", "libcublas.so.12"});
  REQUIRE_LIBRARY(library);
  const auto cublas = load_cublas(*library);
  ASSERT_TRUE(cublas.ok()) << cublas.error().message;
  EXPECT_STREQ(cublas->cublasGetStatusName(CUBLAS_STATUS_NOT_INITIALIZED),
               "CUBLAS_STATUS_NOT_INITIALIZED");
}

TEST(CudaLibraries, CudnnFindsItsParts) {
  const auto library = open({"libcudnn.so.9"});
  REQUIRE_LIBRARY(library);
  auto* version = function_of<std::size_t()>(*library, "cudnnGetVersion");
  auto* recurrent = function_of<int()>(*library, "cudnnAdvVersionCheck");
  ASSERT_TRUE(version != nullptr && recurrent != nullptr);
  EXPECT_GE(version(), 90000u);
  EXPECT_EQ(recurrent(), 0);  // opens libcudnn_adv and what it needs
}

TEST(CudaLibraries, CuptiLoads) {
  const auto library = open({"libcupti.so.13", "libcupti.so.12"});
  REQUIRE_LIBRARY(library);
  auto* get_version = function_of<int(std::uint32_t*)>(*library, "cuptiGetVersion");
  ASSERT_NE(get_version, nullptr);
  std::uint32_t version = 0;
  const int result = get_version(&version);
  constexpr int kUnknown = 999;  // what CUPTI 13.5 says to everything without a driver
  if (result == kUnknown && !open_cuda_driver().ok()) return;
  EXPECT_EQ(result, 0);
  EXPECT_GT(version, 0u);
}

}  // namespace
}  // namespace rnntune
