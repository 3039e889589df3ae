// SPDX-License-Identifier: Apache-2.0
// The fakes of NVRTC, cuBLAS and cuBLASLt.
#include <algorithm>
#include <cstring>

#include "tests/fake_cuda.hpp"

namespace rnntune {
namespace {

using Lock = std::lock_guard<std::mutex>;

struct Program {
  std::string source, expression, lowered, cubin;
};

Program& program_of(nvrtcProgram program) { return *reinterpret_cast<Program*>(program); }

nvrtcResult create_program(nvrtcProgram* program, const char* source, const char*, int count,
                           const char* const* bodies, const char* const* names) {
  const Lock lock(fake_cuda_mutex());
  const auto status = nvrtcResult(fake_call("nvrtcCreateProgram"));
  if (status != NVRTC_SUCCESS) return status;
  for (int i = 0; i < count; ++i) fake_cuda().headers[names[i]] = bodies[i];
  auto* const made = new Program{.source = source, .expression{}, .lowered{}, .cubin{}};
  fake_cuda().alive.insert(made);
  *program = reinterpret_cast<nvrtcProgram>(made);
  return status;
}

nvrtcResult compile_program(nvrtcProgram program, int count, const char* const* options) {
  std::function<void()> meanwhile;
  Program& made = program_of(program);
  std::string text = made.expression + "|";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : " ") + std::string(options[i]);
  {
    const Lock lock(fake_cuda_mutex());
    fake_cuda().compiled.push_back(text);
    meanwhile = fake_cuda().while_compiling;
  }
  if (meanwhile) meanwhile();
  const Lock lock(fake_cuda_mutex());
  made.lowered = "lowered " + made.expression;
  made.cubin = "cubin of " + text;
  // One kernel may be told to fail by its name.
  const auto failure = fake_cuda().failures.find(made.expression);
  if (failure != fake_cuda().failures.end()) return nvrtcResult(failure->second);
  return nvrtcResult(fake_call("nvrtcCompileProgram"));
}

// With the terminating zero, as NVRTC counts.
template <std::string Program::*field>
nvrtcResult size_of_field(nvrtcProgram program, std::size_t* size) {
  *size = (program_of(program).*field).size() + 1;
  return NVRTC_SUCCESS;
}

template <class T>
CUresult attribute_of(std::map<int, std::uint64_t>& to, int attribute, const void* value,
                      std::size_t bytes) {
  T number = 0;
  if (bytes != sizeof number) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(&number, value, bytes);
  to[attribute] = std::uint64_t(number);
  return CUDA_SUCCESS;
}

struct Handle {
  CUstream stream = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};
Handle blas_handle;

cublasStatus_t sgemm(cublasHandle_t, cublasOperation_t transpose_a, cublasOperation_t transpose_b,
                     int m, int n, int k, const float* alpha, const float* a, int lda,
                     const float* b, int ldb, const float* beta, float* c, int ldc) {
  const Lock lock(fake_cuda_mutex());
  fake_cuda().gemms.push_back({.transpose_a = transpose_a,
                               .transpose_b = transpose_b,
                               .m = m,
                               .n = n,
                               .k = k,
                               .lda = lda,
                               .ldb = ldb,
                               .ldc = ldc,
                               .alpha = *alpha,
                               .beta = *beta,
                               .a = a,
                               .b = b,
                               .c = c,
                               .stream = blas_handle.stream,
                               .workspace = blas_handle.workspace,
                               .workspace_bytes = blas_handle.workspace_bytes});
  return cublasStatus_t(fake_call("cublasSgemm_v2"));
}

// Descriptors of cuBLASLt by their handles.
struct Descriptor {
  int compute_type = 0, scale_type = 0;
  std::map<int, std::uint64_t> attributes;
};
std::map<void*, Descriptor> descriptors;
std::map<void*, FakeLayout> layouts;

template <class T>
cublasStatus_t make(const char* name, T* handle) {
  const Lock lock(fake_cuda_mutex());
  const auto status = cublasStatus_t(fake_call(name));
  if (status == CUBLAS_STATUS_SUCCESS) *handle = static_cast<T>(fake_handle());
  return status;
}

cublasStatus_t unmake(const char* name, const void* handle) {
  const Lock lock(fake_cuda_mutex());
  fake_call(name);
  const bool was = fake_cuda().alive.erase(const_cast<void*>(handle)) == 1;
  return was ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                         cublasLtMatmulPreference_t, int requested,
                         cublasLtMatmulHeuristicResult_t results[], int* count) {
  const Lock lock(fake_cuda_mutex());
  FakeCuda& fake = fake_cuda();
  fake.requested_heuristics = requested;
  *count = std::min(requested, int(fake.heuristics.size()));
  for (int i = 0; i < *count; ++i) {
    results[i].algo.data[0] = 100 + std::uint64_t(i);
    results[i].workspaceSize = fake.heuristic_workspace;
    results[i].state = cublasStatus_t(fake.heuristics[std::size_t(i)]);
  }
  return cublasStatus_t(fake_call("cublasLtMatmulAlgoGetHeuristic"));
}

cublasStatus_t matmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha,
                      const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                      cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                      cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                      const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t bytes,
                      CUstream_st* stream) {
  const Lock lock(fake_cuda_mutex());
  if (c != d || c_layout != d_layout) return CUBLAS_STATUS_INVALID_VALUE;
  Descriptor& descriptor = descriptors.at(product);
  FakeMatmul call{.a = layouts.at(a_layout), .b = layouts.at(b_layout), .c = layouts.at(c_layout)};
  call.transpose_a = int(descriptor.attributes[CUBLASLT_MATMUL_DESC_TRANSA]);
  call.transpose_b = int(descriptor.attributes[CUBLASLT_MATMUL_DESC_TRANSB]);
  call.compute_type = descriptor.compute_type;
  call.scale_type = descriptor.scale_type;
  call.gemm.alpha = *static_cast<const float*>(alpha);
  call.gemm.beta = *static_cast<const float*>(beta);
  call.gemm.a = static_cast<const float*>(a);
  call.gemm.b = static_cast<const float*>(b);
  call.gemm.c = static_cast<float*>(d);
  call.gemm.stream = stream;
  call.gemm.workspace = workspace;
  call.gemm.workspace_bytes = bytes;
  call.algorithm = algorithm->data[0];
  fake_cuda().matmuls.push_back(call);
  return cublasStatus_t(fake_call("cublasLtMatmul"));
}

}  // namespace

Nvrtc fake_nvrtc() {
  Nvrtc nvrtc;
  nvrtc.nvrtcVersion = [](int* major, int* minor) {
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
  };
  nvrtc.nvrtcGetErrorString = [](nvrtcResult) { return "NVRTC as asked"; };
  nvrtc.nvrtcCreateProgram = create_program;
  nvrtc.nvrtcDestroyProgram = [](nvrtcProgram* program) {
    const Lock lock(fake_cuda_mutex());
    fake_cuda().alive.erase(&program_of(*program));
    delete &program_of(*program);
    *program = nullptr;
    return NVRTC_SUCCESS;
  };
  nvrtc.nvrtcAddNameExpression = [](nvrtcProgram program, const char* expression) {
    program_of(program).expression = expression;
    return NVRTC_SUCCESS;
  };
  nvrtc.nvrtcCompileProgram = compile_program;
  nvrtc.nvrtcGetProgramLogSize = [](nvrtcProgram, std::size_t* size) {
    *size = fake_cuda().compiler_log.size() + 1;
    return NVRTC_SUCCESS;
  };
  nvrtc.nvrtcGetProgramLog = [](nvrtcProgram, char* log) {
    std::strcpy(log, fake_cuda().compiler_log.c_str());
    return NVRTC_SUCCESS;
  };
  nvrtc.nvrtcGetLoweredName = [](nvrtcProgram program, const char*, const char** name) {
    *name = program_of(program).lowered.c_str();
    return NVRTC_SUCCESS;
  };
  nvrtc.nvrtcGetCUBINSize = size_of_field<&Program::cubin>;
  nvrtc.nvrtcGetCUBIN = [](nvrtcProgram program, char* cubin) {
    std::strcpy(cubin, program_of(program).cubin.c_str());
    return NVRTC_SUCCESS;
  };
  return nvrtc;
}

Cublas fake_cublas() {
  Cublas cublas;
  cublas.cublasCreate_v2 = [](cublasHandle_t* handle) { return make("cublasCreate_v2", handle); };
  cublas.cublasDestroy_v2 = [](cublasHandle_t handle) {
    return unmake("cublasDestroy_v2", handle);
  };
  cublas.cublasGetStatusName = [](cublasStatus_t) { return "CUBLAS_STATUS_FAKE"; };
  cublas.cublasSetMathMode = [](cublasHandle_t, cublasMath_t mode) {
    const Lock lock(fake_cuda_mutex());
    fake_cuda().math_mode = mode;
    return cublasStatus_t(fake_call("cublasSetMathMode"));
  };
  // As the library does: a new stream takes the workspace away.
  cublas.cublasSetStream_v2 = [](cublasHandle_t, CUstream_st* stream) {
    const Lock lock(fake_cuda_mutex());
    blas_handle = {.stream = stream};
    return cublasStatus_t(fake_call("cublasSetStream_v2"));
  };
  cublas.cublasSetWorkspace_v2 = [](cublasHandle_t, void* workspace, std::size_t bytes) {
    const Lock lock(fake_cuda_mutex());
    blas_handle.workspace = workspace;
    blas_handle.workspace_bytes = bytes;
    return cublasStatus_t(fake_call("cublasSetWorkspace_v2"));
  };
  cublas.cublasSgemm_v2 = sgemm;
  return cublas;
}

CublasLt fake_cublas_lt() {
  CublasLt table;
  table.cublasLtCreate = [](cublasLtHandle_t* handle) { return make("cublasLtCreate", handle); };
  table.cublasLtDestroy = [](cublasLtHandle_t handle) { return unmake("cublasLtDestroy", handle); };
  table.cublasLtGetStatusName = [](cublasStatus_t) { return "CUBLAS_STATUS_FAKE"; };
  table.cublasLtMatmulDescCreate = [](cublasLtMatmulDesc_t* descriptor, cublasComputeType_t compute,
                                      cudaDataType_t scale) {
    const cublasStatus_t status = make("cublasLtMatmulDescCreate", descriptor);
    if (status == CUBLAS_STATUS_SUCCESS) descriptors[*descriptor] = {compute, scale, {}};
    return status;
  };
  table.cublasLtMatmulDescSetAttribute = [](cublasLtMatmulDesc_t descriptor,
                                            cublasLtMatmulDescAttributes_t attribute,
                                            const void* value, std::size_t bytes) {
    const CUresult result =
        attribute_of<std::int32_t>(descriptors.at(descriptor).attributes, attribute, value, bytes);
    return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
  };
  table.cublasLtMatmulDescDestroy = [](cublasLtMatmulDesc_t descriptor) {
    return unmake("cublasLtMatmulDescDestroy", descriptor);
  };
  table.cublasLtMatrixLayoutCreate = [](cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                        std::uint64_t rows, std::uint64_t columns,
                                        std::int64_t stride) {
    if (type != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
    const cublasStatus_t status = make("cublasLtMatrixLayoutCreate", layout);
    if (status == CUBLAS_STATUS_SUCCESS) layouts[*layout] = {rows, columns, stride};
    return status;
  };
  table.cublasLtMatrixLayoutDestroy = [](cublasLtMatrixLayout_t layout) {
    return unmake("cublasLtMatrixLayoutDestroy", layout);
  };
  table.cublasLtMatmulPreferenceCreate = [](cublasLtMatmulPreference_t* preference) {
    return make("cublasLtMatmulPreferenceCreate", preference);
  };
  table.cublasLtMatmulPreferenceSetAttribute = [](cublasLtMatmulPreference_t,
                                                  cublasLtMatmulPreferenceAttributes_t attribute,
                                                  const void* value, std::size_t bytes) {
    const Lock lock(fake_cuda_mutex());
    std::map<int, std::uint64_t>& to = fake_cuda().preferences;
    const CUresult result = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
                                ? attribute_of<std::uint64_t>(to, attribute, value, bytes)
                                : attribute_of<std::uint32_t>(to, attribute, value, bytes);
    return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
  };
  table.cublasLtMatmulPreferenceDestroy = [](cublasLtMatmulPreference_t preference) {
    return unmake("cublasLtMatmulPreferenceDestroy", preference);
  };
  table.cublasLtMatmulAlgoGetHeuristic = heuristic;
  table.cublasLtMatmul = matmul;
  return table;
}

}  // namespace rnntune
