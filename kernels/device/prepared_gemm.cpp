// SPDX-License-Identifier: Apache-2.0
#include "device/prepared_gemm.hpp"

#include <cstdint>

namespace rnntune::gpu {

bool gemm_aligned(const float* operand) {
  return reinterpret_cast<std::uintptr_t>(operand) % kGemmAlignment == 0;
}

std::string why_not_prepared(const Gemm& prepared, const Gemm& gemm) {
  const struct {
    const char* name;
    std::int64_t expected, value;
  } rows[] = {{"transpose_a", prepared.transpose_a, gemm.transpose_a},
              {"transpose_b", prepared.transpose_b, gemm.transpose_b},
              {"m", prepared.m, gemm.m},
              {"n", prepared.n, gemm.n},
              {"k", prepared.k, gemm.k},
              {"lda", prepared.lda, gemm.lda},
              {"ldb", prepared.ldb, gemm.ldb},
              {"ldc", prepared.ldc, gemm.ldc}};
  for (const auto& row : rows) {
    if (row.value == row.expected) continue;
    return std::string(row.name) + ": expected " + std::to_string(row.expected) +
           ", as was prepared, got " + std::to_string(row.value);
  }
  const struct {
    const char* name;
    const float *prepared, *given;
  } operands[] = {{"a", prepared.a, gemm.a}, {"b", prepared.b, gemm.b}, {"c", prepared.c, gemm.c}};
  for (const auto& operand : operands) {
    if (gemm_aligned(operand.given) || !gemm_aligned(operand.prepared)) continue;
    return std::string(operand.name) + ": expected memory aligned to " +
           std::to_string(kGemmAlignment) + " bytes, as was prepared";
  }
  return {};
}

}  // namespace rnntune::gpu
