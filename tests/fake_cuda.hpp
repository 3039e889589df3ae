// SPDX-License-Identifier: Apache-2.0
// A CUDA driver, compiler and BLAS for tests: they record what they are called with, keep memory on
// the host, and fail where they are told to. They prove calls and their order, no results.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "kernels/cuda/libraries.hpp"

namespace rnntune {

struct FakeLaunch {
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  unsigned grid[3] = {}, block[3] = {}, cluster[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  bool cooperative = false;
  void** parameters = nullptr;  // dangling after the launch
  int first_argument = 0;       // what they pointed to then
};

struct FakeGemm {
  int transpose_a = -1, transpose_b = -1, m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  float alpha = 0, beta = 0;
  const float *a = nullptr, *b = nullptr;
  float* c = nullptr;
  CUstream stream = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

struct FakeLayout {
  std::uint64_t rows = 0, columns = 0;
  std::int64_t stride = 0;
};

// What cublasLtMatmul was called with, through its descriptors.
struct FakeMatmul {
  FakeLayout a, b, c;
  int transpose_a = 0, transpose_b = 0;
  int compute_type = 0, scale_type = 0;
  FakeGemm gemm{};  // alpha, beta, operands, workspace and stream
  std::uint64_t algorithm = 0;
};

struct FakeCuda {
  // Driven by the test.
  int devices = 1, major = 9, minor = 0;
  std::map<std::string, int> failures;               // status by the name of the function
  std::map<CUfunction_attribute, int> of_functions;  // 0 where it is not said
  int blocks_of_a_multiprocessor = 2;
  int clusters = 8;
  std::string compiler_log = "a log\n";
  std::function<void()> while_compiling;  // called without the lock
  std::vector<int> heuristics;            // a status for each that cuBLASLt finds
  std::size_t heuristic_workspace = 1 << 20;

  // What happened.
  std::vector<std::string> calls;  // names, in order
  std::map<std::uintptr_t, std::size_t> memory;
  std::vector<FakeLaunch> launches;
  std::vector<FakeGemm> gemms;
  std::vector<FakeMatmul> matmuls;
  std::map<int, std::uint64_t> preferences;  // of cuBLASLt's heuristics, by attribute
  int requested_heuristics = 0;
  std::vector<std::string> compiled;  // "expression|options" of every compilation
  std::map<std::string, std::string> headers;
  std::vector<std::string> images;  // that were loaded
  std::set<void*> alive;            // handles that were created and not destroyed
  std::set<CUstream> capturing;
  int math_mode = -1, retained = 0;

  int count(const std::string& name) const;
};

// The one that the tables below work on. Replaced by reset.
FakeCuda& fake_cuda();
void reset_fake_cuda();
// The lock of fake_cuda(), for threads of a test.
std::mutex& fake_cuda_mutex();

CudaDriver fake_driver();
Nvrtc fake_nvrtc();
Cublas fake_cublas();
CublasLt fake_cublas_lt();
cuda::Libraries fake_libraries();

// Of the fakes: records the call, and returns what it shall fail with, or 0. The lock is held.
int fake_call(const char* name);
// A new handle among those alive.
void* fake_handle();

}  // namespace rnntune
