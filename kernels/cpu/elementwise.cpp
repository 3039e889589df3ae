// SPDX-License-Identifier: Apache-2.0
// The elementwise kernels on one instruction set (cpu/target.hpp).
#include "cpu/elementwise.hpp"

// clang-format off
#include "cpu/target.hpp"  // first of what includes Highway
// clang-format on
#include "cpu/activations-inl.hpp"
#include "cpu/tails-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rnntune::cpu {
namespace HWY_NAMESPACE {
namespace {

// y[r][c] = op(x[r][c]...), with x the other operands.
template <class Op, class... Xs>
HWY_INLINE void map(Shape n, Out y, Op op, Xs... xs) {
  const F f;
  const std::int64_t lanes = std::int64_t(hn::Lanes(f));
  for (std::int64_t r = 0; r < n.rows; ++r) {
    std::int64_t c = 0;
    for (; c + lanes <= n.cols; c += lanes) {
      hn::StoreU(op(hn::LoadU(f, xs.data + r * xs.ld + c)...), f, y.data + r * y.ld + c);
    }
    if (c < n.cols) {
      const std::size_t rest = std::size_t(n.cols - c);
      store_tail(op(load_tail(xs.data + r * xs.ld + c, rest)...), y.data + r * y.ld + c, rest);
    }
  }
}

void add_bias(Shape n, const float* bias, Out y) {
  map(
      n, y, [](V a, V b) { return a + b; }, In(y), In{bias, 0});
}

void add(Shape n, In a, In b, Out y) {
  map(
      n, y, [](V u, V v) { return u + v; }, a, b);
}

void multiply(Shape n, In a, In b, Out y) {
  map(
      n, y, [](V u, V v) { return u * v; }, a, b);
}

void multiply_add(Shape n, In a, In b, Out y) {
  map(
      n, y, [](V u, V v, V w) { return hn::MulAdd(u, v, w); }, a, b, In(y));
}

void sigmoid(Shape n, In x, Out y) {
  map(
      n, y, [](V v) { return Math::sigmoid(v); }, x);
}

void tanh(Shape n, In x, Out y) {
  map(
      n, y, [](V v) { return Math::tanh(v); }, x);
}

void sigmoid_backward(Shape n, In dy, In y, Out dx) {
  map(
      n, dx, [](V d, V v) { return d * v * (Math::one() - v); }, dy, y);
}

void tanh_backward(Shape n, In dy, In y, Out dx) {
  map(
      n, dx, [](V d, V v) { return hn::NegMulAdd(d * v, v, d); }, dy, y);
}

void sum_rows(Shape n, In x, float* sums) {
  const F f;
  const std::int64_t lanes = std::int64_t(hn::Lanes(f));
  std::int64_t c = 0;
  for (; c + lanes <= n.cols; c += lanes) {
    V sum = hn::LoadU(f, sums + c);
    for (std::int64_t r = 0; r < n.rows; ++r) sum = sum + hn::LoadU(f, x.data + r * x.ld + c);
    hn::StoreU(sum, f, sums + c);
  }
  for (; c < n.cols; ++c) {
    for (std::int64_t r = 0; r < n.rows; ++r) sums[c] += x.data[r * x.ld + c];
  }
}

void sum_cols(Shape n, In x, float* sums) {
  const F f;
  const std::int64_t lanes = std::int64_t(hn::Lanes(f));
  for (std::int64_t r = 0; r < n.rows; ++r) {
    const float* const row = x.data + r * x.ld;
    V sum = hn::Zero(f);
    std::int64_t c = 0;
    for (; c + lanes <= n.cols; c += lanes) sum = sum + hn::LoadU(f, row + c);
    if (c < n.cols) sum = sum + load_tail(row + c, std::size_t(n.cols - c));
    sums[r] += hn::GetLane(hn::SumOfLanes(f, sum));
  }
}

}  // namespace

Elementwise make_elementwise() {
  return {add_bias,         add,           multiply, multiply_add, sigmoid, tanh,
          sigmoid_backward, tanh_backward, sum_rows, sum_cols};
}

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::cpu
HWY_AFTER_NAMESPACE();
