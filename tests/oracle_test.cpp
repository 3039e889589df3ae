// SPDX-License-Identifier: Apache-2.0
// The oracle against central finite differences of its own forward, and the seeded inputs.
#include "reference/oracle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace rnntune::reference {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

// The scalar whose gradients backward computes.
double loss(const Problem& problem, const DoubleInputs& in) {
  const Outputs<double> out = oracle_step(problem, in);
  return dot(out.y, in.dy) + dot(out.h_n, in.dh_n) + dot(out.c_n, in.dc_n);
}

// max |difference quotient - gradient| / rms(gradient) over all elements of one input
double worst_error(const Problem& problem, DoubleInputs& in, std::vector<double>& input,
                   const std::vector<double>& gradient) {
  constexpr double kStep = 1e-6;
  EXPECT_EQ(input.size(), gradient.size());
  double worst = 0;
  for (std::size_t k = 0; k < input.size(); ++k) {
    const double value = input[k];
    input[k] = value + kStep;
    const double above = loss(problem, in);
    input[k] = value - kStep;
    const double below = loss(problem, in);
    input[k] = value;
    worst = std::max(worst, std::abs((above - below) / (2 * kStep) - gradient[k]));
  }
  return worst / std::sqrt(dot(gradient, gradient) / static_cast<double>(gradient.size()));
}

class FiniteDifferences : public testing::TestWithParam<const char*> {};

TEST_P(FiniteDifferences, AgreeWithBackward) {
  const Problem problem = parse_problem(GetParam()).value();
  DoubleInputs in = widen(make_inputs(problem, 7));
  const Outputs<double> out = oracle_step(problem, in);
  auto expect_small = [&](const char* name, std::vector<double>& input,
                          const std::vector<double>& gradient) {
    if (input.empty() && gradient.empty()) return;
    const double error = worst_error(problem, in, input, gradient);
    EXPECT_LT(error, 1e-6) << name;
    EXPECT_GT(error, 0) << name << ": a difference quotient is never exact";
  };
  expect_small("x", in.x, out.dx);
  expect_small("h_0", in.h_0, out.dh_0);
  expect_small("c_0", in.c_0, out.dc_0);
  for (std::size_t n = 0; n < in.weights.size(); ++n) {
    expect_small("weight_ih", in.weights[n].weight_ih, out.gradients[n].weight_ih);
    expect_small("weight_hh", in.weights[n].weight_hh, out.gradients[n].weight_hh);
    expect_small("bias_ih", in.weights[n].bias_ih, out.gradients[n].bias_ih);
    expect_small("bias_hh", in.weights[n].bias_hh, out.gradients[n].bias_hh);
    expect_small("weight_hr", in.weights[n].weight_hr, out.gradients[n].weight_hr);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Problems, FiniteDifferences,
    testing::Values("lstm:L1,T4,B2,I3,H5,f32", "lstm:L2,T4,B3,I5,H3,f32", "lstm:L3,T3,B2,I4,H4,f32",
                    "lstm:L2,T3,B2,I3,H4,bias1,f32", "lstm:L2,T3,B2,I3,H4,nobias,f32",
                    "lstm:L1,T1,B1,I1,H1,f32", "lstm:L2,T3,B2,I3,H5,P2,f32",
                    "lstm:L1,T3,B2,I3,H4,P4,f32", "lstm:L2,T3,B2,I3,H4,D2,f32",
                    "lstm:L2,T3,B2,I3,H4,P2,D2,f32", "gru:L2,T4,B2,I3,H4,f32",
                    "gru:L2,T3,B2,I3,H4,D2,f32", "gru:L1,T3,B2,I3,H4,bias1,f32",
                    "rnn_tanh:L2,T4,B2,I3,H4,f32", "rnn_relu:L2,T4,B2,I3,H4,f32"));

TEST(Oracle, RefusesWhatItHasNoEquationsFor) {
  for (const char* text :
       {"lstm_peephole:T1,B1,I1,H1,f32", "lstm:T1,B1,I4,H4,G2,f32", "lstm:T1,B1,I4,H4,R2,f32",
        "lstm:T1,B1,I4,H4,N2,f32", "lstm:T1,B1,H4,skip,f32", "lstm:T1,B1,I4,H4,var,f32",
        "lstm:L2,T1,B1,I4,H4,drop0.1,f32"}) {
    const Result<Problem> problem = parse_problem(text);
    ASSERT_TRUE(problem.ok()) << text << ": " << problem.error().message;
    EXPECT_FALSE(reference_why_not(*problem).empty()) << text;
    EXPECT_THROW(oracle_step(*problem, make_inputs(*problem, 1)), std::invalid_argument) << text;
  }
}

// Bidirectional, reversed in time and with the two directions' weights swapped, is the same
// network.
TEST(Oracle, DirectionsMirrorEachOther) {
  const Problem problem = parse_problem("lstm:L1,T5,B1,I2,H3,D2,f32").value();
  DoubleInputs in = widen(make_inputs(problem, 3)), mirror = in;
  for (int t = 0; t < 5; ++t) std::copy_n(&in.x[t * 2], 2, &mirror.x[(4 - t) * 2]);
  std::swap(mirror.weights[0], mirror.weights[1]);
  std::rotate(mirror.h_0.begin(), mirror.h_0.begin() + 3, mirror.h_0.end());
  std::rotate(mirror.c_0.begin(), mirror.c_0.begin() + 3, mirror.c_0.end());
  const Outputs<double> a = oracle_step(problem, in), b = oracle_step(problem, mirror);
  for (int t = 0; t < 5; ++t)
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(a.y[t * 6 + k], b.y[(4 - t) * 6 + 3 + k]);
      EXPECT_EQ(a.y[t * 6 + 3 + k], b.y[(4 - t) * 6 + k]);
    }
}

TEST(Inputs, AreTheSameBitsEverywhere) {
  const Problem problem = parse_problem("lstm:L1,T2,B1,I2,H2,f32").value();
  const Inputs in = make_inputs(problem, 42);
  EXPECT_EQ(in.x, make_inputs(problem, 42).x);
  EXPECT_NE(in.x, make_inputs(problem, 43).x);
  const std::vector<std::uint32_t> golden = {0x3f19efa3u, 0xbf7e6309u, 0x3f157c21u, 0xbe168e54u};
  for (std::size_t k = 0; k < golden.size(); ++k)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(in.x[k]), golden[k]) << k;
}

TEST(Inputs, AreNeverZeroOrSubnormal) {
  const Problem problem = parse_problem("lstm:L2,T50,B20,I30,H40,P8,f32").value();
  const Inputs in = make_inputs(problem, 1);
  auto expect_normal = [](const std::vector<float>& v) {
    ASSERT_FALSE(v.empty());
    EXPECT_TRUE(std::all_of(v.begin(), v.end(), [](float f) { return std::isnormal(f); }));
    EXPECT_LT(std::abs(*std::max_element(v.begin(), v.end())), 1);
    EXPECT_LT(*std::min_element(v.begin(), v.end()), 0);
  };
  for (const auto* v : {&in.x, &in.h_0, &in.c_0, &in.dy, &in.dh_n, &in.dc_n}) expect_normal(*v);
  for (const LayerTensors<float>& w : in.weights)
    for (const auto* v : {&w.weight_ih, &w.weight_hh, &w.bias_ih, &w.bias_hh, &w.weight_hr})
      expect_normal(*v);
}

// Saturated gates hide formula errors: an all-one input agreed between two forms of GRU where an
// all-zero one did not (oneDNN issue 617).
TEST(Inputs, KeepEveryGateFromSaturation) {
  for (const char* text : {"lstm:L1,T40,B20,I65,H65,f32", "lstm:L1,T200,B8,I1,H1,f32",
                           "lstm:L1,T40,B8,I500,H3,f32", "gru:L1,T40,B20,I65,H65,f32"}) {
    const Problem problem = parse_problem(text).value();
    const Inputs in = make_inputs(problem, 5);
    const Outputs<double> out = oracle_step(problem, in);
    const LayerTensors<float>& w = in.weights[0];
    const std::int64_t H = problem.hidden, I = problem.input, B = problem.batch;
    for (std::int64_t row = 0; row < problem.time * B; ++row)
      for (std::int64_t r = 0; r < problem.gates() * H; ++r) {
        double a = w.bias_ih[r] + w.bias_hh[r];
        for (std::int64_t k = 0; k < I; ++k) a += w.weight_ih[r * I + k] * in.x[row * I + k];
        for (std::int64_t k = 0; k < H; ++k)
          a += w.weight_hh[r * H + k] * (row < B ? in.h_0[row * H + k] : out.y[(row - B) * H + k]);
        const double gate = 1 / (1 + std::exp(-a));
        ASSERT_GT(gate, 0.05) << text;
        ASSERT_LT(gate, 0.95) << text;
      }
  }
}

// What the error bound relies on: a perturbed initial state is forgotten.
TEST(Inputs, MakeTheRecurrenceContract) {
  for (const char* text : {"lstm:L1,T60,B2,I8,H32,f32", "gru:L1,T60,B2,I8,H32,f32",
                           "lstm:L1,T60,B2,I3,H1,f32", "lstm:L2,T60,B2,I8,H32,P8,f32"}) {
    const Problem problem = parse_problem(text).value();
    DoubleInputs in = widen(make_inputs(problem, 11));
    const Outputs<double> out = oracle_step(problem, in);
    for (double& h : in.h_0) h += 1e-3;
    for (double& c : in.c_0) c += 1e-3;
    const Outputs<double> moved = oracle_step(problem, in);
    for (std::size_t k = 0; k < out.h_n.size(); ++k)
      EXPECT_LT(std::abs(out.h_n[k] - moved.h_n[k]), 1e-6) << text;
  }
}

}  // namespace
}  // namespace rnntune::reference
