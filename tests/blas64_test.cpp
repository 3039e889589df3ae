// SPDX-License-Identifier: Apache-2.0
// The float64 reference on BLAS against the oracle: same equations, other order of summation.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "reference/step.hpp"

namespace rnntune::reference {
namespace {

class Blas64 : public testing::TestWithParam<const char*> {};

TEST_P(Blas64, AgreesWithTheOracle) {
  const Problem problem = parse_problem(GetParam()).value();
  const Inputs inputs = make_inputs(problem, 3);
  const Outputs<double> oracle = oracle_step(problem, inputs), blas = blas64_step(problem, inputs);
  int tensors = 0;
  each_output(blas, oracle, [&](const std::string& name, const auto& out, const auto& ref) {
    ++tensors;
    ASSERT_EQ(out.size(), ref.size()) << name;
    double sum = 0, worst = 0;
    for (std::size_t k = 0; k < ref.size(); ++k) {
      sum += ref[k] * ref[k];
      worst = std::max(worst, std::abs(out[k] - ref[k]));
    }
    EXPECT_LE(worst, 1e-12 * std::sqrt(sum / static_cast<double>(ref.size()))) << name;
    EXPECT_GT(sum, 0) << name;
  });
  EXPECT_GE(tensors, 6);
}

INSTANTIATE_TEST_SUITE_P(
    Problems, Blas64,
    testing::Values("lstm:L1,T1,B1,I1,H1,f32", "lstm:L2,T9,B5,I13,H31,f32",
                    "lstm:L3,T7,B1,I17,H8,bias1,f32", "lstm:L1,T300,B2,I3,H5,nobias,f32",
                    "lstm:L2,T6,B4,I10,H24,P7,f32", "lstm:L2,T6,B4,I10,H24,D2,f32",
                    "lstm:L2,T6,B4,I10,H24,P24,D2,f32", "gru:L2,T9,B5,I13,H31,f32",
                    "gru:L2,T6,B4,I10,H24,D2,bias1,f32", "rnn_tanh:L2,T9,B5,I13,H31,f32",
                    "rnn_relu:L2,T9,B5,I13,H31,f32"));

TEST(Blas64Step, RefusesWhatTheOracleRefuses) {
  const Problem problem = parse_problem("lstm:T1,B1,I4,H4,G2,f32").value();
  EXPECT_THROW(blas64_step(problem, make_inputs(problem, 1)), std::invalid_argument);
}

}  // namespace
}  // namespace rnntune::reference
