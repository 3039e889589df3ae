// SPDX-License-Identifier: Apache-2.0
// Products of the CUDA device: exactly which arguments reach cuBLAS and cuBLASLt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fake_cuda.hpp"

namespace rnntune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

class CudaGemmTest : public testing::Test {
 protected:
  void SetUp() override {
    reset_fake_cuda();
    device = *cuda::open_cuda(fake_libraries(), {}, {});
    a = static_cast<float*>(*device->allocate(64 * kMebibyte));
    b = a + 1024;
    c = a + 2048;
    workspace = a + 4096;
    gemm = {.transpose_a = true,
            .transpose_b = false,
            .m = 5,
            .n = 4,
            .k = 3,
            .alpha = 0.5f,
            .a = a,
            .lda = 6,
            .b = b,
            .ldb = 7,
            .beta = 1,
            .c = c,
            .ldc = 8};
  }
  void TearDown() override {
    device->release(a);
    device.reset();
    EXPECT_THAT(fake_cuda().alive, IsEmpty());
  }
  std::string prepare_error(int choice) {
    const auto prepared = device->prepare(gemm, choice);
    return prepared.ok() ? "prepared" : prepared.error().message;
  }
  std::string run_error(const gpu::PreparedGemm& prepared, const Gemm& with, void* memory) {
    const Status status = device->run(prepared, with, memory, nullptr);
    return status.ok() ? "ran" : status.error().message;
  }

  std::shared_ptr<gpu::GpuDevice> device;
  float *a = nullptr, *b = nullptr, *c = nullptr;
  void* workspace = nullptr;
  Gemm gemm;
};

void expect_same(const FakeGemm& call, const Gemm& gemm) {
  EXPECT_EQ(call.transpose_a, gemm.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  EXPECT_EQ(call.transpose_b, gemm.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  EXPECT_EQ(call.m, gemm.m);
  EXPECT_EQ(call.n, gemm.n);
  EXPECT_EQ(call.k, gemm.k);
  EXPECT_EQ(call.alpha, gemm.alpha);
  EXPECT_EQ(call.a, gemm.a);
  EXPECT_EQ(call.lda, gemm.lda);
  EXPECT_EQ(call.b, gemm.b);
  EXPECT_EQ(call.ldb, gemm.ldb);
  EXPECT_EQ(call.beta, gemm.beta);
  EXPECT_EQ(call.c, gemm.c);
  EXPECT_EQ(call.ldc, gemm.ldc);
}

TEST_F(CudaGemmTest, PassesEveryArgument) {
  const Stream stream = *device->create_stream();
  ASSERT_TRUE(device->gemm(gemm, stream).ok());
  std::swap(gemm.transpose_a, gemm.transpose_b);
  ASSERT_TRUE(device->gemm(gemm, nullptr).ok());
  ASSERT_EQ(fake_cuda().gemms.size(), 2u);
  expect_same(fake_cuda().gemms[1], gemm);
  std::swap(gemm.transpose_a, gemm.transpose_b);
  expect_same(fake_cuda().gemms[0], gemm);
  EXPECT_EQ(fake_cuda().gemms[0].stream, stream);
  EXPECT_EQ(fake_cuda().gemms[0].workspace, nullptr);
  EXPECT_EQ(fake_cuda().gemms[1].stream, nullptr);
  EXPECT_EQ(fake_cuda().math_mode, CUBLAS_DEFAULT_MATH) << "true f32";
  EXPECT_EQ(fake_cuda().count("cublasCreate_v2"), 1);
  device->destroy_stream(stream);
}

TEST_F(CudaGemmTest, ChecksItsArguments) {
  gemm.lda = 2;
  EXPECT_EQ(device->gemm(gemm).error().message, "gemm: lda: expected at least 3, got 2");
  EXPECT_EQ(prepare_error(0), "gemm: lda: expected at least 3, got 2");
  gemm = {.m = 0, .n = 4, .k = 3, .lda = 1, .ldb = 3, .ldc = 1};
  EXPECT_TRUE(device->gemm(gemm).ok());
  EXPECT_EQ(prepare_error(-1), "gemm: choice: expected 0 to 8, got -1");
  EXPECT_EQ(prepare_error(9), "gemm: choice: expected 0 to 8, got 9");
  EXPECT_EQ(fake_cuda().count("cublasSgemm_v2"), 0);
}

TEST_F(CudaGemmTest, ErrorsNameCallStatusAndSizes) {
  fake_cuda().failures = {{"cublasSgemm_v2", CUBLAS_STATUS_EXECUTION_FAILED}};
  EXPECT_EQ(device->gemm(gemm).error().message,
            "cublasSgemm_v2: CUBLAS_STATUS_FAKE: m 5, n 4, k 3, lda 6, ldb 7, ldc 8, A transposed");
  fake_cuda().failures = {{"cublasSgemm_v2", CUBLAS_STATUS_ALLOC_FAILED}};
  EXPECT_EQ(device->gemm(gemm).error().code, ErrorCode::out_of_memory);
}

TEST_F(CudaGemmTest, WhatFailsToOpenIsOpenedAgain) {
  for (const char* call : {"cublasCreate_v2", "cublasSetMathMode"}) {
    fake_cuda().failures = {{call, CUBLAS_STATUS_NOT_INITIALIZED}};
    EXPECT_THAT(device->gemm(gemm).error().message, StartsWith(call));
    EXPECT_THAT(fake_cuda().alive, IsEmpty());
  }
  fake_cuda().failures.clear();
  EXPECT_TRUE(device->gemm(gemm).ok());
  EXPECT_EQ(fake_cuda().math_mode, CUBLAS_DEFAULT_MATH);
}

TEST_F(CudaGemmTest, WithoutTheLibraryItSaysSo) {
  cuda::Libraries libraries = fake_libraries();
  libraries.cublas = [] { return Result<Cublas>(Error{ErrorCode::not_found, "no libcublas"}); };
  libraries.cublas_lt = [] { return Result<CublasLt>(Error{ErrorCode::not_found, "no Lt"}); };
  const auto without = *cuda::open_cuda(libraries, {}, {});
  EXPECT_EQ(without->gemm(gemm).error().message, "gemm: no libcublas");
  EXPECT_EQ(without->gemm(gemm).error().code, ErrorCode::unsupported);
  EXPECT_EQ(without->prepare(gemm, 1).error().message, "gemm: no Lt");
}

TEST_F(CudaGemmTest, TheLibrarysOwnChoiceTakesTheWorkspace) {
  const auto prepared = device->prepare(gemm, 0);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  EXPECT_EQ((*prepared)->workspace_bytes(), 32 * kMebibyte);
  const Stream stream = *device->create_stream();
  ASSERT_TRUE(device->run(**prepared, gemm, workspace, stream).ok());
  ASSERT_TRUE(device->run(**prepared, gemm, workspace, stream).ok());
  for (const FakeGemm& call : fake_cuda().gemms) {
    expect_same(call, gemm);
    EXPECT_EQ(call.stream, stream);
    EXPECT_EQ(call.workspace, workspace);
    EXPECT_EQ(call.workspace_bytes, 32 * kMebibyte);
  }
  EXPECT_EQ(fake_cuda().gemms.size(), 2u);
  device->destroy_stream(stream);
}

TEST_F(CudaGemmTest, RunsOnlyWhatWasPrepared) {
  fake_cuda().heuristics = {CUBLAS_STATUS_SUCCESS};
  for (const int choice : {0, 1}) {
    const auto prepared = *device->prepare(gemm, choice);
    Gemm other = gemm;
    other.m = 4;  // smaller is another shape
    EXPECT_EQ(run_error(*prepared, other, workspace),
              "gemm: m: expected 5, as was prepared, got 4");
    other = gemm;
    other.transpose_b = true;
    EXPECT_THAT(run_error(*prepared, other, workspace), HasSubstr("transpose_b: expected 0"));
    other = gemm;
    other.b = b + 1;
    EXPECT_EQ(run_error(*prepared, other, workspace),
              "gemm: b: expected memory aligned to 16 bytes, as was prepared");
    EXPECT_THAT(run_error(*prepared, gemm, nullptr), HasSubstr("got a null pointer"));
    EXPECT_THAT(run_error(*prepared, gemm, static_cast<char*>(workspace) + 64),
                HasSubstr("bytes aligned to 256, got another alignment"));
    other = gemm;
    other.alpha = 3;
    other.beta = 0;
    other.a = a + 4;
    EXPECT_EQ(run_error(*prepared, other, workspace), "ran");
  }
  EXPECT_EQ(fake_cuda().gemms.size(), 1u);
  EXPECT_EQ(fake_cuda().matmuls.size(), 1u);
}

TEST_F(CudaGemmTest, HeuristicsComeInOrderWithoutTheRefused) {
  fake_cuda().heuristics = {CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_SUPPORTED,
                            CUBLAS_STATUS_SUCCESS};
  EXPECT_EQ(device->gemm_choices(), 8);
  const auto first = *device->prepare(gemm, 1), second = *device->prepare(gemm, 2);
  EXPECT_EQ(fake_cuda().requested_heuristics, 8);
  EXPECT_EQ(first->workspace_bytes(), kMebibyte);
  ASSERT_TRUE(device->run(*first, gemm, workspace, nullptr).ok());
  ASSERT_TRUE(device->run(*second, gemm, workspace, nullptr).ok());
  EXPECT_EQ(fake_cuda().matmuls[0].algorithm, 100u);
  EXPECT_EQ(fake_cuda().matmuls[1].algorithm, 102u);
  const auto third = device->prepare(gemm, 3);
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, ErrorCode::unsupported);
  EXPECT_THAT(third.error().message,
              StartsWith("gemm: choice 3: cuBLASLt offers 2 for m 5, n 4, k 3"));
  fake_cuda().failures = {{"cublasLtMatmulAlgoGetHeuristic", CUBLAS_STATUS_NOT_SUPPORTED}};
  fake_cuda().heuristics.clear();
  EXPECT_THAT(prepare_error(1), HasSubstr("cuBLASLt offers 0"));
}

TEST_F(CudaGemmTest, DescribesTheProductInTrueF32) {
  fake_cuda().heuristics = {CUBLAS_STATUS_SUCCESS};
  const Stream stream = *device->create_stream();
  const auto prepared = *device->prepare(gemm, 1);
  ASSERT_TRUE(device->run(*prepared, gemm, workspace, stream).ok());
  const FakeMatmul& call = fake_cuda().matmuls.at(0);
  EXPECT_EQ(call.compute_type, CUBLAS_COMPUTE_32F);
  EXPECT_EQ(call.scale_type, CUDA_R_32F);
  EXPECT_EQ(call.transpose_a, CUBLAS_OP_T);
  EXPECT_EQ(call.transpose_b, CUBLAS_OP_N);
  // As they are stored: A is k by m.
  EXPECT_EQ(call.a.rows, 3u);
  EXPECT_EQ(call.a.columns, 5u);
  EXPECT_EQ(call.a.stride, 6);
  EXPECT_EQ(call.b.rows, 3u);
  EXPECT_EQ(call.b.columns, 4u);
  EXPECT_EQ(call.b.stride, 7);
  EXPECT_EQ(call.c.rows, 5u);
  EXPECT_EQ(call.c.columns, 4u);
  EXPECT_EQ(call.c.stride, 8);
  EXPECT_EQ(call.gemm.alpha, 0.5f);
  EXPECT_EQ(call.gemm.beta, 1.0f);
  EXPECT_EQ(call.gemm.a, a);
  EXPECT_EQ(call.gemm.b, b);
  EXPECT_EQ(call.gemm.c, c);
  EXPECT_EQ(call.gemm.stream, stream);
  EXPECT_EQ(call.gemm.workspace, workspace);
  EXPECT_EQ(call.gemm.workspace_bytes, kMebibyte);
  device->destroy_stream(stream);
}

TEST_F(CudaGemmTest, AsksForTheAlignmentThereIs) {
  fake_cuda().heuristics = {CUBLAS_STATUS_SUCCESS};
  gemm.b = b + 1;
  ASSERT_TRUE(device->prepare(gemm, 1).ok());
  const auto& preferences = fake_cuda().preferences;
  EXPECT_EQ(preferences.at(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES), 32 * kMebibyte);
  EXPECT_EQ(preferences.at(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES), 16u);
  EXPECT_EQ(preferences.at(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES), 4u);
  EXPECT_EQ(preferences.at(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES), 16u);
  EXPECT_EQ(preferences.at(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES), 16u);
}

TEST_F(CudaGemmTest, WithoutATermThereIsNothingToChoose) {
  gemm.k = 0;
  const auto prepared = device->prepare(gemm, 5);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  ASSERT_TRUE(device->run(**prepared, gemm, workspace, nullptr).ok());
  EXPECT_EQ(fake_cuda().gemms.at(0).k, 0);
  EXPECT_EQ(fake_cuda().count("cublasLtCreate"), 0);
}

TEST_F(CudaGemmTest, AFailedPreparationLeavesNoDescriptor) {
  for (const char* call : {"cublasLtMatmulDescCreate", "cublasLtMatrixLayoutCreate",
                           "cublasLtMatmulPreferenceCreate", "cublasLtMatmulAlgoGetHeuristic"}) {
    fake_cuda().failures = {{call, CUBLAS_STATUS_ALLOC_FAILED}};
    EXPECT_THAT(prepare_error(1), AllOf(StartsWith(call), HasSubstr("m 5, n 4, k 3")));
    EXPECT_EQ(fake_cuda().alive.size(), 1u) << call << ": only the library's handle";
  }
}

TEST_F(CudaGemmTest, APreparedProductOutlivesItsDevice) {
  fake_cuda().heuristics = {CUBLAS_STATUS_SUCCESS};
  const auto other = cuda::open_cuda(fake_libraries(), {}, {});
  std::shared_ptr<const gpu::PreparedGemm> prepared;
  {
    const auto shortly = *cuda::open_cuda(fake_libraries(), {}, {});
    prepared = *shortly->prepare(gemm, 1);
  }
  EXPECT_EQ(fake_cuda().retained, 3);
  prepared.reset();
  EXPECT_EQ(fake_cuda().retained, 2);
}

}  // namespace
}  // namespace rnntune
