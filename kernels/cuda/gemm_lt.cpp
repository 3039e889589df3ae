// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "cuda/gemm.hpp"
#include "device/prepared_gemm.hpp"

namespace rnntune::cuda {
namespace {

// Enough for the heuristics to split k; taken only as far as the chosen one needs it.
constexpr std::uint64_t kMaxWorkspaceBytes = std::uint64_t{32} << 20;

class Matmul final : public CudaGemm {
 public:
  Matmul(std::shared_ptr<const LtLibrary> library, const Gemm& shape)
      : CudaGemm(shape, 0), library_(std::move(library)) {}
  Matmul(const Matmul&) = delete;
  // Descriptors are objects of the host: no context, and none that could be lost.
  ~Matmul() override {
    for (cublasLtMatrixLayout_t layout : {a_, b_, c_}) {
      if (layout != nullptr) table().cublasLtMatrixLayoutDestroy(layout);
    }
    if (product_ != nullptr) table().cublasLtMatmulDescDestroy(product_);
  }

  Status describe();
  Status choose(int choice);

 private:
  const CublasLt& table() const { return library_->table(); }
  template <class Body>
  Status call(const char* name, const Body& body) const {
    return call_cublas(
        library_->context(), table().cublasLtGetStatusName, name,
        [&] { return gemm_text(shape()); }, body);
  }
  template <class Value>
  Status set(cublasLtMatmulDescAttributes_t attribute, Value value) const {
    return call("cublasLtMatmulDescSetAttribute", [&] {
      return table().cublasLtMatmulDescSetAttribute(product_, attribute, &value, sizeof value);
    });
  }
  Status describe(cublasLtMatrixLayout_t& layout, std::int64_t rows, std::int64_t columns,
                  std::int64_t stride) const {
    return call("cublasLtMatrixLayoutCreate", [&] {
      return table().cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, std::uint64_t(rows),
                                                std::uint64_t(columns), stride);
    });
  }
  Status prefer(cublasLtMatmulPreference_t preference) const;
  Status launch(const Gemm& gemm, void* workspace, CUstream stream) const override;

  const std::shared_ptr<const LtLibrary> library_;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

// Products in f32 and sums in f32: no TF32.
Status Matmul::describe() {
  const Gemm& g = shape();
  Status status = call("cublasLtMatmulDescCreate", [&] {
    return table().cublasLtMatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  });
  const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  if (status.ok()) status = set(CUBLASLT_MATMUL_DESC_TRANSA, operation(g.transpose_a));
  if (status.ok()) status = set(CUBLASLT_MATMUL_DESC_TRANSB, operation(g.transpose_b));
  // As they are stored, not as they are read.
  if (status.ok()) {
    status = describe(a_, g.transpose_a ? g.k : g.m, g.transpose_a ? g.m : g.k, g.lda);
  }
  if (status.ok()) {
    status = describe(b_, g.transpose_b ? g.n : g.k, g.transpose_b ? g.k : g.n, g.ldb);
  }
  if (status.ok()) status = describe(c_, g.m, g.n, g.ldc);
  return status;
}

Status Matmul::prefer(cublasLtMatmulPreference_t preference) const {
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    return call("cublasLtMatmulPreferenceSetAttribute", [&] {
      return table().cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value,
                                                          sizeof value);
    });
  };
  // The library's default promises 256 bytes, which slices of a tensor do not keep.
  const auto alignment = [](const float* operand) {
    return std::uint32_t(gpu::gemm_aligned(operand) ? gpu::kGemmAlignment : sizeof(float));
  };
  const Gemm& g = shape();
  Status status = set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspaceBytes);
  if (status.ok()) status = set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(g.a));
  if (status.ok()) status = set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(g.b));
  if (status.ok()) status = set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(g.c));
  if (status.ok()) status = set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(g.c));
  return status;
}

Status Matmul::choose(int choice) {
  cublasLtMatmulPreference_t preference = nullptr;
  Status status = call("cublasLtMatmulPreferenceCreate",
                       [&] { return table().cublasLtMatmulPreferenceCreate(&preference); });
  if (!status.ok()) return status;
  std::vector<cublasLtMatmulHeuristicResult_t> found(kGemmHeuristics);
  int count = 0;
  status = prefer(preference);
  if (status.ok()) {
    status = call("cublasLtMatmulAlgoGetHeuristic", [&] {
      const cublasStatus_t result = table().cublasLtMatmulAlgoGetHeuristic(
          library_->handle(), product_, a_, b_, c_, c_, preference, int(found.size()), found.data(),
          &count);
      return result == CUBLAS_STATUS_NOT_SUPPORTED ? CUBLAS_STATUS_SUCCESS : result;  // none
    });
  }
  table().cublasLtMatmulPreferenceDestroy(preference);
  if (!status.ok()) return status;
  found.resize(std::size_t(std::clamp(count, 0, kGemmHeuristics)));
  std::erase_if(found, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
  if (std::size_t(choice) > found.size()) {
    return unsupported("gemm: choice " + std::to_string(choice) + ": cuBLASLt offers " +
                       std::to_string(found.size()) + " for " + gemm_text(shape()));
  }
  const cublasLtMatmulHeuristicResult_t& chosen = found[std::size_t(choice) - 1];
  algorithm_ = chosen.algo;
  set_workspace_bytes(chosen.workspaceSize);
  return {};
}

Status Matmul::launch(const Gemm& g, void* workspace, CUstream stream) const {
  return call("cublasLtMatmul", [&] {
    return table().cublasLtMatmul(library_->handle(), product_, &g.alpha, g.a, a_, g.b, b_, &g.beta,
                                  g.c, c_, g.c, c_, &algorithm_, workspace, workspace_bytes(),
                                  stream);
  });
}

}  // namespace

LtLibrary::~LtLibrary() {
  if (handle_ == nullptr) return;
  context_->release([&] { table_->cublasLtDestroy(handle_); });
}

Status LtLibrary::open() {
  const std::lock_guard lock(mutex_);
  if (handle_ != nullptr) return {};
  Result<CublasLt> opened = open_();
  if (!opened.ok()) return unsupported("gemm: " + opened.error().message);
  table_ = *opened;
  cublasLtHandle_t handle = nullptr;
  Status status = call_cublas(
      *context_, table_->cublasLtGetStatusName, "cublasLtCreate", [] { return std::string(); },
      [&] { return table_->cublasLtCreate(&handle); });
  if (status.ok()) handle_ = handle;
  return status;
}

Result<std::shared_ptr<const CudaGemm>> LtLibrary::prepare(const Gemm& shape, int choice) {
  if (Status status = open(); !status.ok()) return status.error();
  const auto gemm = std::make_shared<Matmul>(shared_from_this(), shape);
  Status status = gemm->describe();
  if (status.ok()) status = gemm->choose(choice);
  if (!status.ok()) return status.error();
  return std::shared_ptr<const CudaGemm>(gemm);
}

}  // namespace rnntune::cuda
