// SPDX-License-Identifier: Apache-2.0
// Products on a CUDA device, true f32: cuBLAS chooses an algorithm itself at each call, cuBLASLt
// offers its best ones at plan time. The libraries are opened when first asked for: that takes
// hundreds of milliseconds.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "cuda/context.hpp"
#include "device/cublas.hpp"
#include "device/cublas_lt.hpp"

namespace rnntune::cuda {

// How many heuristics of cuBLASLt are offered beside cuBLAS' own choice. They come in order of the
// time that the library estimates.
inline constexpr int kGemmHeuristics = 8;

// What a workspace must be aligned to.
inline constexpr std::size_t kWorkspaceAlignment = 256;

// It keeps what it needs alive.
class CudaGemm : public gpu::PreparedGemm {
 public:
  CudaGemm(const Gemm& shape, std::size_t workspace_bytes)
      : shape_(shape), workspace_bytes_(workspace_bytes) {}
  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  // Refuses another shape than was prepared, and a workspace that is none.
  Status run(const Gemm& gemm, void* workspace, CUstream stream) const;

 protected:
  const Gemm& shape() const { return shape_; }
  void set_workspace_bytes(std::size_t bytes) { workspace_bytes_ = bytes; }

 private:
  virtual Status launch(const Gemm& gemm, void* workspace, CUstream stream) const = 0;

  const Gemm shape_;
  std::size_t workspace_bytes_;
};

// Choice 0: cublasSgemm.
class GemmLibrary : public std::enable_shared_from_this<GemmLibrary> {
 public:
  using Open = std::function<Result<Cublas>()>;

  GemmLibrary(std::shared_ptr<const Context> context, Open open)
      : context_(std::move(context)), open_(std::move(open)) {}
  GemmLibrary(const GemmLibrary&) = delete;
  ~GemmLibrary();

  Result<std::shared_ptr<const CudaGemm>> prepare(const Gemm& shape);
  // Of run(); null there: cuBLAS uses memory of its own.
  std::size_t workspace_bytes() const;
  Status run(const Gemm& gemm, void* workspace, CUstream stream);

 private:
  Status open();  // mutex_ is held

  const std::shared_ptr<const Context> context_;
  const Open open_;
  std::mutex mutex_;  // stream and workspace are state of the handle
  std::optional<Cublas> cublas_;
  cublasHandle_t handle_ = nullptr;
};

// The other choices: cublasLtMatmul.
class LtLibrary : public std::enable_shared_from_this<LtLibrary> {
 public:
  using Open = std::function<Result<CublasLt>()>;

  LtLibrary(std::shared_ptr<const Context> context, Open open)
      : context_(std::move(context)), open_(std::move(open)) {}
  LtLibrary(const LtLibrary&) = delete;
  ~LtLibrary();

  // Number `choice` of the heuristics for this shape, from 1. The library may have fewer.
  Result<std::shared_ptr<const CudaGemm>> prepare(const Gemm& shape, int choice);

  // Of an open library.
  const Context& context() const { return *context_; }
  const CublasLt& table() const { return *table_; }
  cublasLtHandle_t handle() const { return handle_; }

 private:
  Status open();

  const std::shared_ptr<const Context> context_;
  const Open open_;
  std::mutex mutex_;  // of opening; threads may share the handle
  std::optional<CublasLt> table_;
  cublasLtHandle_t handle_ = nullptr;
};

// Calls a function of cuBLAS with the context current. The error names the call, the status by
// `name_of`, and what `argument` says.
template <class NameOf, class Argument, class Body>
Status call_cublas(const Context& context, NameOf name_of, const char* call,
                   const Argument& argument, const Body& body) {
  cublasStatus_t result = CUBLAS_STATUS_SUCCESS;
  Status status = context.run(call, [&] {
    result = body();
    return CUDA_SUCCESS;
  });
  if (!status.ok() || result == CUBLAS_STATUS_SUCCESS) return status;
  const ErrorCode code =
      result == CUBLAS_STATUS_ALLOC_FAILED ? ErrorCode::out_of_memory : ErrorCode::internal;
  const std::string of = argument();
  return Error{code, std::string(call) + ": " + name_of(result) + (of.empty() ? "" : ": " + of)};
}

// "m 4, n 3, k 2, lda 4, ldb 2, ldc 4".
std::string gemm_text(const Gemm& gemm);

}  // namespace rnntune::cuda
