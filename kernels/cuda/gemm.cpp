// SPDX-License-Identifier: Apache-2.0
#include "cuda/gemm.hpp"

#include "device/blas.hpp"
#include "device/prepared_gemm.hpp"

namespace rnntune::cuda {
namespace {

std::string nothing() { return {}; }

class Sgemm final : public CudaGemm {
 public:
  Sgemm(std::shared_ptr<GemmLibrary> library, const Gemm& shape)
      : CudaGemm(shape, library->workspace_bytes()), library_(std::move(library)) {}

 private:
  Status launch(const Gemm& gemm, void* workspace, CUstream stream) const override {
    return library_->run(gemm, workspace, stream);
  }

  const std::shared_ptr<GemmLibrary> library_;
};

}  // namespace

std::string gemm_text(const Gemm& g) {
  std::string text;
  const struct {
    const char* name;
    std::int64_t value;
  } rows[] = {{"m ", g.m},       {", n ", g.n},     {", k ", g.k},
              {", lda ", g.lda}, {", ldb ", g.ldb}, {", ldc ", g.ldc}};
  for (const auto& row : rows) text += row.name + std::to_string(row.value);
  return text + (g.transpose_a ? ", A transposed" : "") + (g.transpose_b ? ", B transposed" : "");
}

Status CudaGemm::run(const Gemm& gemm, void* workspace, CUstream stream) const {
  if (const std::string why = gpu::why_not_prepared(shape_, gemm); !why.empty()) {
    return invalid_argument("gemm: " + why);
  }
  if (gemm.m == 0 || gemm.n == 0) return {};
  const bool aligned = reinterpret_cast<std::uintptr_t>(workspace) % kWorkspaceAlignment == 0;
  if (workspace_bytes_ > 0 && (workspace == nullptr || !aligned)) {
    return invalid_argument("gemm: workspace: expected " + std::to_string(workspace_bytes_) +
                            " bytes aligned to " + std::to_string(kWorkspaceAlignment) + ", got " +
                            (aligned ? "a null pointer" : "another alignment"));
  }
  return launch(gemm, workspace, stream);
}

GemmLibrary::~GemmLibrary() {
  if (handle_ == nullptr) return;
  context_->release([&] { cublas_->cublasDestroy_v2(handle_); });
}

// What the cuBLAS manual advises for cublasSetWorkspace.
std::size_t GemmLibrary::workspace_bytes() const {
  return std::size_t{context_->limits().compute_capability >= 90 ? 32u : 4u} << 20;
}

Status GemmLibrary::open() {
  if (handle_ != nullptr) return {};
  Result<Cublas> opened = open_();
  if (!opened.ok()) return unsupported("gemm: " + opened.error().message);
  cublas_ = *opened;
  cublasHandle_t handle = nullptr;
  const auto name_of = cublas_->cublasGetStatusName;
  Status status = call_cublas(*context_, name_of, "cublasCreate_v2", nothing,
                              [&] { return cublas_->cublasCreate_v2(&handle); });
  if (!status.ok()) return status;
  // True f32: neither TF32 nor emulation, whatever the library's default becomes.
  status = call_cublas(*context_, name_of, "cublasSetMathMode", nothing,
                       [&] { return cublas_->cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH); });
  if (status.ok()) {
    handle_ = handle;
  } else {
    context_->release([&] { cublas_->cublasDestroy_v2(handle); });
  }
  return status;
}

Result<std::shared_ptr<const CudaGemm>> GemmLibrary::prepare(const Gemm& shape) {
  const std::lock_guard lock(mutex_);
  if (Status status = open(); !status.ok()) return status.error();
  return std::shared_ptr<const CudaGemm>(std::make_shared<Sgemm>(shared_from_this(), shape));
}

Status GemmLibrary::run(const Gemm& g, void* workspace, CUstream stream) {
  if (Status status = check_gemm(g); !status.ok()) return status;
  if (g.m == 0 || g.n == 0) return {};
  const std::lock_guard lock(mutex_);
  if (Status status = open(); !status.ok()) return status;
  const auto name_of = cublas_->cublasGetStatusName;
  // The stream first: setting it takes a workspace away.
  Status status = call_cublas(*context_, name_of, "cublasSetStream_v2", nothing,
                              [&] { return cublas_->cublasSetStream_v2(handle_, stream); });
  if (!status.ok()) return status;
  if (workspace != nullptr) {
    const auto bytes = [&] { return std::to_string(workspace_bytes()) + " bytes"; };
    status = call_cublas(*context_, name_of, "cublasSetWorkspace_v2", bytes, [&] {
      return cublas_->cublasSetWorkspace_v2(handle_, workspace, workspace_bytes());
    });
    if (!status.ok()) return status;
  }
  const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const auto text = [&] { return gemm_text(g); };
  return call_cublas(*context_, name_of, "cublasSgemm_v2", text, [&] {
    return cublas_->cublasSgemm_v2(handle_, operation(g.transpose_a), operation(g.transpose_b),
                                   int(g.m), int(g.n), int(g.k), &g.alpha, g.a, int(g.lda), g.b,
                                   int(g.ldb), &g.beta, g.c, int(g.ldc));
  });
}

}  // namespace rnntune::cuda
