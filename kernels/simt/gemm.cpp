// SPDX-License-Identifier: Apache-2.0
#include "simt/gemm.hpp"

#include <cstdint>
#include <limits>
#include <vector>

#include "device/prepared_gemm.hpp"

namespace rnntune::simt {
namespace {

constexpr int kParts[kGemmChoices + 1] = {1, 2, 5};

bool reads_operands(const Gemm& g) { return g.k != 0 && g.alpha != 0; }

// Of sizes within 31 bits; more than there can be where the product does not fit.
std::size_t matrix_bytes(std::int64_t rows, std::int64_t columns, std::int64_t stride,
                         int matrices = 1) {
  constexpr auto kMost = std::numeric_limits<std::size_t>::max();
  const auto elements = static_cast<std::size_t>((columns - 1) * stride + rows);
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(matrices);
  return elements > kMost / bytes ? kMost : elements * bytes;
}

// Column by column of op(A) op(B) over k in [begin, end): emit(column, sums of its m rows).
template <class Emit>
void each_column(const Gemm& g, std::int64_t begin, std::int64_t end, const Emit& emit) {
  const auto m = static_cast<std::size_t>(g.m), depth = static_cast<std::size_t>(end - begin);
  std::vector<float> a(m * depth);  // by columns, whatever it was
  for (std::size_t k = 0; k < depth; ++k) {
    const std::int64_t at = begin + static_cast<std::int64_t>(k);
    for (std::size_t i = 0; i < m; ++i) {
      const auto row = static_cast<std::int64_t>(i);
      a[k * m + i] = g.transpose_a ? g.a[row * g.lda + at] : g.a[at * g.lda + row];
    }
  }
  std::vector<double> sums(m);
  for (std::int64_t j = 0; j < g.n; ++j) {
    sums.assign(m, 0.0);
    for (std::size_t k = 0; k < depth; ++k) {
      const std::int64_t at = begin + static_cast<std::int64_t>(k);
      const double b = g.transpose_b ? g.b[at * g.ldb + j] : g.b[j * g.ldb + at];
      const float* const column = &a[k * m];
      for (std::size_t i = 0; i < m; ++i) sums[i] += b * double(column[i]);
    }
    emit(j, sums.data());
  }
}

// Where beta is 0, C is not read: it may hold NaN.
void finish_column(const Gemm& g, std::int64_t column, const double* sums) {
  float* const c = g.c + column * g.ldc;
  for (std::int64_t i = 0; i < g.m; ++i) {
    double value = reads_operands(g) ? double(g.alpha) * sums[i] : 0.0;
    if (g.beta != 0) value += double(g.beta) * double(c[i]);
    c[i] = static_cast<float>(value);
  }
}

}  // namespace

PreparedProduct::PreparedProduct(const Gemm& shape, int choice) : shape_(shape), choice_(choice) {}

int PreparedProduct::parts() const { return kParts[choice_]; }

std::size_t PreparedProduct::workspace_bytes() const {
  if (parts() == 1 || shape_.m == 0 || shape_.n == 0) return 0;
  return matrix_bytes(shape_.m, shape_.n, shape_.m, parts());
}

std::string PreparedProduct::why_not(const Gemm& gemm) const {
  return gpu::why_not_prepared(shape_, gemm);
}

std::string each_operand(
    const Gemm& g,
    const std::function<std::string(const char*, const float*, std::size_t)>& visit) {
  if (g.m == 0 || g.n == 0) return {};
  std::string answer;
  if (reads_operands(g)) {
    const std::int64_t a_rows = g.transpose_a ? g.k : g.m, a_columns = g.transpose_a ? g.m : g.k;
    const std::int64_t b_rows = g.transpose_b ? g.n : g.k, b_columns = g.transpose_b ? g.k : g.n;
    answer = visit("a", g.a, matrix_bytes(a_rows, a_columns, g.lda));
    if (answer.empty()) answer = visit("b", g.b, matrix_bytes(b_rows, b_columns, g.ldb));
  }
  return answer.empty() ? visit("c", g.c, matrix_bytes(g.m, g.n, g.ldc)) : answer;
}

void multiply(const Gemm& g) {
  if (g.m == 0) return;
  each_column(g, 0, reads_operands(g) ? g.k : 0,
              [&](std::int64_t column, const double* sums) { finish_column(g, column, sums); });
}

void multiply_parts(const Gemm& g, int parts, float* partial) {
  const std::int64_t k = reads_operands(g) ? g.k : 0;
  for (int part = 0; part < parts; ++part) {
    float* const to = partial + part * g.m * g.n;
    each_column(g, k * part / parts, k * (part + 1) / parts,
                [&](std::int64_t column, const double* sums) {
                  for (std::int64_t i = 0; i < g.m; ++i) {
                    to[column * g.m + i] = static_cast<float>(sums[i]);
                  }
                });
  }
}

void add_parts(const Gemm& g, int parts, const float* partial) {
  std::vector<double> sums(static_cast<std::size_t>(g.m));
  for (std::int64_t column = 0; column < g.n; ++column) {
    sums.assign(sums.size(), 0.0);
    for (int part = 0; part < parts; ++part) {
      const float* const from = partial + (part * g.n + column) * g.m;
      for (std::int64_t i = 0; i < g.m; ++i) sums[static_cast<std::size_t>(i)] += double(from[i]);
    }
    finish_column(g, column, sums.data());
  }
}

}  // namespace rnntune::simt
