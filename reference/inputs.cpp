// SPDX-License-Identifier: Apache-2.0
// Seeded inputs. Every tensor has its own stream of splitmix64 (Steele et al. 2014), so one
// tensor's size never shifts another's values. A value is an odd 25-bit numerator over 2^24, in
// (-1, 1), times a scale: odd, so never zero; at least scale * 2^-24, so never subnormal; one
// integer to float conversion and one multiplication, both exactly specified, so the same bits on
// every machine.
//
// Scales. A weight matrix of n columns gets 1/sqrt(n): entries have variance 1/(3n), which makes
// the spectral radius of a square block 1/sqrt(3) = 0.58, and with the slopes of the gates (at most
// 1/4 and 1) the recurrence contracts. With |x|, |h_0| < 1 a pre-activation then has a standard
// deviation of at most sqrt(1/9 + 1/9 + 2/48) = 0.51, so that gates stay within 0.05..0.95 (|a|
// < 2.94): no saturation hides a formula error.
#include <cmath>

#include "reference/step.hpp"

namespace rnntune::reference {
namespace {

constexpr float kBiasScale = 0.25f;

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class Streams {
 public:
  explicit Streams(std::uint64_t seed) : seed_(seed) {}

  std::vector<float> next(std::int64_t count, float scale) {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;
    std::uint64_t state = mix(seed_ + kGolden) ^ mix(++tensor_ * kGolden);
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& value : out) {
      state += kGolden;
      const auto k = static_cast<std::int32_t>(mix(state) >> 40);  // 24 bits
      value = static_cast<float>(2 * k + 1 - (1 << 24)) * 0x1p-24f * scale;
    }
    return out;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t tensor_ = 0;
};

float matrix_scale(std::int64_t columns) { return 1.0f / std::sqrt(static_cast<float>(columns)); }

}  // namespace

Inputs make_inputs(const Problem& problem, std::uint64_t seed) {
  const TensorCounts counts = tensor_counts(problem);
  const std::int64_t rows = problem.gates() * problem.hidden, out = problem.output();
  Streams streams(seed);
  Inputs in;
  in.x = streams.next(counts.x, 1);
  in.h_0 = streams.next(counts.h, 1);
  in.c_0 = streams.next(counts.c, 1);
  in.dy = streams.next(counts.y, 1);
  in.dh_n = streams.next(counts.h, 1);
  in.dc_n = streams.next(counts.c, 1);
  for (std::int64_t n = 0; n < problem.layers * problem.directions; ++n) {
    const std::int64_t width = problem.layer_input(n / problem.directions);
    LayerTensors<float> w;
    w.weight_ih = streams.next(rows * width, matrix_scale(width));
    w.weight_hh = streams.next(rows * out, matrix_scale(out));
    w.bias_ih = streams.next(problem.bias == Bias::none ? 0 : rows, kBiasScale);
    w.bias_hh = streams.next(problem.bias == Bias::two ? rows : 0, kBiasScale);
    w.weight_hr = streams.next(problem.projection > 0 ? out * problem.hidden : 0,
                               matrix_scale(problem.hidden));
    in.weights.push_back(std::move(w));
  }
  return in;
}

std::vector<LayerWeights> weight_pointers(const Inputs& inputs) {
  auto data = [](const std::vector<float>& v) { return v.empty() ? nullptr : v.data(); };
  std::vector<LayerWeights> out;
  for (const LayerTensors<float>& w : inputs.weights)
    out.push_back({data(w.weight_ih), data(w.weight_hh), data(w.bias_ih), data(w.bias_hh),
                   data(w.weight_hr)});
  return out;
}

}  // namespace rnntune::reference
