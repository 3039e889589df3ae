// SPDX-License-Identifier: Apache-2.0
// The bound. oneDNN's benchdnn accepts an RNN whose relative error stays below
//
//   4 * (2 if backward) * (2 if two directions are added) * ceil(log2(accumulation length * T)) *
//   eps
//
// We judge max|out - ref| by rms(ref) of the whole tensor, so the form is adapted:
//
//   bound = 4 * passes * directions * max(ceil(log2(n T L)), kFloor, sqrt(n) / 8) * small * eps
//
// eps = 2^-23 for f32 (2^-10 f16 and tf32, 2^-7 bf16): the spacing of values at 1.
//
// n: the longest sum on the way to an element, since an error made early is inherited.
//   y, h_n, c_n    K + O      W x + R h', K the widest input of a layer, O the width of h; and H
//   for
//                             the projection
//   dx, dh_0, dc_0 and gates * H, of W^T and R^T times the gate gradients
//   dW, db         and T * B, one term for every time step and sample
// The logarithm stands for pairwise and blocked summation, in which rounding grows with the depth
// of the tree, and L layers and T time steps deepen it. T does not multiply the bound: the
// recurrence of the seeded inputs contracts (inputs.cpp), so an error made at one time step is
// forgotten geometrically and the sum over all of them stays a small multiple of one step's own.
//
// passes: 2 for gradients, which inherit forward's errors and add their own. directions: 2 where a
// tensor adds both directions: dx, and everything behind a second bidirectional layer's dx.
//
// kFloor = 4: activations are approximated to about 2e-7 absolute = 2 eps, and rms(h) is near 0.2,
// so 10 eps can be right at any length.
//
// sqrt(n) / 8: a plain running sum of n terms of one size rounds n times to the size of the partial
// sum; the error's rms is about 0.2 sqrt(n) eps of the result's. The largest element of a tensor is
// up to five times that: 1.0 sqrt(n) eps = 8 * sqrt(n) / 8 eps. It overtakes the logarithm only for
// weight gradients beyond n = 65536. At T = 65537, B = 1: n T L = 2^32.0001, log 33, sqrt(n) / 8
// = 32, so bound = 4 * 2 * 33 eps = 3.1e-5 for dW, and 4 * ceil(log2(2 * 65537)) eps = 8.6e-6 for y
// with I = H = 1.
//
// small = 1000^(1/N). rms(ref) estimates a tensor's scale from the N independent values behind it
// (one unit's gate gradients at one time step are all multiples of one dh; a weight gradient of T *
// B = 1 is an outer product). All N are below 1/1000^(1/N) of their scale once in a thousand times,
// by cancellation, and a right result must pass then: 1000 at N = 1, 5.6 at 4, 1.07 at 100.
//
// oneDNN 2.6.3's f32 step reached 0.55 of this bound at the worst over 1500 random problems (L to
// 3, T to 1500, H to 200), 0.57 on ptb_small.
#include "reference/compare.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace rnntune::reference {
namespace {

constexpr double kFloor = 4;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double epsilon(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return 0x1p-23;
    case Dtype::f16:
      return 0x1p-10;
    case Dtype::bf16:
      return 0x1p-7;
    case Dtype::tf32:
      return 0x1p-10;
  }
  return 0;
}

struct Shape {
  double independent, accumulation;  // N, n
  bool backward;
};

Shape shape_of(const Problem& p, std::string_view tensor) {
  const TensorCounts counts = tensor_counts(p);
  const double samples = double(p.time) * double(p.batch);
  const double O = double(p.output()), rows = double(p.gates()) * double(p.hidden);
  double widest = 0;
  for (std::int64_t l = 0; l < p.layers; ++l) widest = std::max(widest, double(p.layer_input(l)));
  const double forward = std::max(widest + O, p.projection > 0 ? double(p.hidden) : 0.0);
  const double backward = std::max(forward, rows);
  if (tensor == "y") return {double(counts.y), forward, false};
  if (tensor == "h_n") return {double(counts.h), forward, false};
  if (tensor == "c_n") return {double(counts.c), forward, false};
  if (tensor == "dx") return {std::min(double(counts.x), samples * O), backward, true};
  if (tensor == "dh_0") return {double(counts.h), backward, true};
  if (tensor == "dc_0") return {double(counts.c), backward, true};
  return {std::min(rows, samples * O), std::max(backward, samples), true};  // dW, db
}

double rms(std::span<const double> values) {
  double sum = 0;
  for (double v : values) sum += v * v;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

bool poisoned(float value) { return std::bit_cast<std::uint32_t>(value) == 0xffffffffu; }

// The worst element: the first one that is not finite, else the one furthest from the reference.
void find_worst(std::span<const float> out, std::span<const double> ref, TensorCheck& check) {
  double worst = -1;
  for (std::size_t k = 0; k < out.size(); ++k) {
    const bool finite = std::isfinite(out[k]);
    const double difference = finite ? std::abs(out[k] - ref[k]) : kInfinity;
    if (difference <= worst) continue;
    worst = difference;
    check.worst = static_cast<std::int64_t>(k);
    if (!finite) break;
  }
  check.value = out[static_cast<std::size_t>(check.worst)];
  check.expected = ref[static_cast<std::size_t>(check.worst)];
  const double scale = rms(ref);
  check.error = worst / (scale > 0 ? scale : 1);
}

bool mostly_zero(std::span<const float> out, std::span<const double> ref) {
  std::size_t expected = 0, zero = 0;
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (ref[k] == 0) continue;
    ++expected;
    if (out[k] == 0) ++zero;
  }
  return 2 * zero > expected;
}

}  // namespace

double error_bound(const Problem& problem, std::string_view tensor) {
  const Shape shape = shape_of(problem, tensor);
  const double n = std::max(shape.accumulation, 1.0);
  const double depth = std::ceil(std::log2(n * double(problem.time) * double(problem.layers)));
  const bool adds_directions =
      problem.directions == 2 && shape.backward && (tensor == "dx" || problem.layers > 1);
  const double small = std::pow(1000, 1 / std::max(shape.independent, 1.0));
  return 4 * (shape.backward ? 2 : 1) * (adds_directions ? 2 : 1) *
         std::max({depth, kFloor, std::sqrt(n) / 8}) * small * epsilon(problem.dtype);
}

TensorCheck check_tensor(std::string_view tensor, std::span<const float> out,
                         std::span<const double> ref, double bound) {
  TensorCheck check;
  check.tensor = tensor;
  check.bound = bound;
  if (out.size() != ref.size()) {
    check.error = kInfinity;
    check.reason = "wrong size";
    return check;
  }
  if (!out.empty()) find_worst(out, ref, check);
  if (!std::isfinite(rms(ref))) {
    check.error = kInfinity;
    check.reason = "reference not finite";
  } else if (std::any_of(out.begin(), out.end(), poisoned)) {
    check.reason = "never written";
  } else if (!std::isfinite(check.error)) {
    check.reason = "not finite";
  } else if (mostly_zero(out, ref)) {
    check.reason = "mostly zero";
  } else if (!(check.error <= bound)) {
    check.reason = "error above bound";
  }
  check.ok = check.reason.empty();
  return check;
}

std::vector<TensorCheck> check_outputs(const Problem& problem, const Outputs<float>& out,
                                       const Outputs<double>& ref) {
  std::vector<TensorCheck> checks;
  each_output(out, ref, [&](const std::string& name, const auto& left, const auto& right) {
    checks.push_back(check_tensor(name, left, right, error_bound(problem, name)));
  });
  if (out.gradients.size() != ref.gradients.size()) {
    TensorCheck missing;
    missing.tensor = "gradients";
    missing.error = kInfinity;
    missing.reason = "wrong size";
    checks.push_back(missing);
  }
  auto severity = [](const TensorCheck& c) { return c.bound > 0 ? c.error / c.bound : kInfinity; };
  std::stable_sort(checks.begin(), checks.end(), [&](const TensorCheck& a, const TensorCheck& b) {
    if (a.ok != b.ok) return b.ok;
    return severity(a) > severity(b);
  });
  return checks;
}

}  // namespace rnntune::reference
