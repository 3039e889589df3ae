// SPDX-License-Identifier: Apache-2.0
// Matrices in memory by rows or by columns, and their product as a BLAS takes it. All of them are
// views.
#pragma once

#include <cstdint>

#include "rnntune/device.hpp"

namespace rnntune {

// Element (r, c) is data[r * ld + c], or data[c * ld + r] by columns.
template <class T>
struct View {
  T* data = nullptr;
  std::int64_t ld = 0;
  bool by_columns = false;

  // The part that starts at (r, c).
  View from(std::int64_t r, std::int64_t c) const {
    return {data + (by_columns ? c * ld + r : r * ld + c), ld, by_columns};
  }
  View transposed() const { return {data, ld, !by_columns}; }
  explicit operator bool() const { return data != nullptr; }
  operator View<const T>() const { return {data, ld, by_columns}; }
};
using Matrix = View<float>;
using ConstMatrix = View<const float>;

// c[rows, cols] = a[rows, depth] * b[depth, cols] + beta * c.
inline Gemm product(std::int64_t rows, std::int64_t cols, std::int64_t depth, ConstMatrix a,
                    ConstMatrix b, Matrix c, float beta) {
  Gemm g{};
  g.k = depth;
  g.beta = beta;
  g.c = c.data;
  g.ldc = c.ld;
  if (c.by_columns) {
    g.m = rows;
    g.n = cols;
    g.a = a.data;
    g.lda = a.ld;
    g.transpose_a = !a.by_columns;
    g.b = b.data;
    g.ldb = b.ld;
    g.transpose_b = !b.by_columns;
  } else {  // what BLAS sees by columns is the transposed product: c^T = b^T a^T
    g.m = cols;
    g.n = rows;
    g.a = b.data;
    g.lda = b.ld;
    g.transpose_a = b.by_columns;
    g.b = a.data;
    g.ldb = a.ld;
    g.transpose_b = a.by_columns;
  }
  return g;
}

}  // namespace rnntune
