// SPDX-License-Identifier: Apache-2.0
// The product with exactly cuBLAS's arguments, by plain loops that sum in double: right for every
// shape, and as fast as small problems need. Other choices than 0 split k and keep the parts in a
// workspace, in two pieces of work: a plan that gives none, or gives it to two streams at once, is
// found out.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "device/gpu.hpp"

namespace rnntune::simt {

inline constexpr int kGemmChoices = 2;  // beside 0

class PreparedProduct final : public gpu::PreparedGemm {
 public:
  PreparedProduct(const Gemm& shape, int choice);
  std::size_t workspace_bytes() const override;
  int parts() const;

  // Why `gemm` is not what was prepared; empty when it is.
  std::string why_not(const Gemm& gemm) const;

 private:
  const Gemm shape_;
  const int choice_;
};

// Visits the operands that the product touches: name, memory and bytes. Calls to `visit` end with
// the first answer that is not empty, which is the result.
std::string each_operand(
    const Gemm& gemm,
    const std::function<std::string(const char*, const float*, std::size_t)>& visit);

void multiply(const Gemm& gemm);
// op(A) op(B), split over k: `parts` matrices of m times n, one behind the other.
void multiply_parts(const Gemm& gemm, int parts, float* partial);
void add_parts(const Gemm& gemm, int parts, const float* partial);

}  // namespace rnntune::simt
