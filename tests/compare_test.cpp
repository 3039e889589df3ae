// SPDX-License-Identifier: Apache-2.0
// The checker: every way a broken kernel's output has been accepted elsewhere is refused here.
#include "reference/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace rnntune::reference {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class Compare : public testing::Test {
 protected:
  Problem problem = parse_problem("lstm:L2,T6,B4,I5,H7,f32").value();
  Inputs inputs = make_inputs(problem, 1);
  Outputs<double> ref = oracle_step(problem, inputs);
  double bound = error_bound(problem, "y");

  static std::vector<float> narrow(const std::vector<double>& v) { return {v.begin(), v.end()}; }
  std::vector<float> good() const { return narrow(ref.y); }
  TensorCheck check(const std::vector<float>& out) const {
    return check_tensor("y", out, ref.y, bound);
  }
  Outputs<float> rounded() const {
    Outputs<float> out{narrow(ref.y),
                       narrow(ref.h_n),
                       narrow(ref.c_n),
                       narrow(ref.dx),
                       narrow(ref.dh_0),
                       narrow(ref.dc_0),
                       {}};
    for (const LayerTensors<double>& g : ref.gradients)
      out.gradients.push_back({narrow(g.weight_ih), narrow(g.weight_hh), narrow(g.bias_ih),
                               narrow(g.bias_hh), narrow(g.weight_hr)});
    return out;
  }
};

TEST_F(Compare, AcceptsTheRoundedReference) {
  const TensorCheck result = check(good());
  EXPECT_TRUE(result.ok) << result.reason;
  EXPECT_GT(result.error, 0);
  EXPECT_LT(result.error, 0x1p-22);
}

TEST_F(Compare, RefusesAllNan) {
  const TensorCheck result = check(std::vector<float>(ref.y.size(), kNan));
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.reason, "not finite");
  EXPECT_EQ(result.error, std::numeric_limits<double>::infinity());
  EXPECT_EQ(result.worst, 0);
  EXPECT_EQ(result.expected, ref.y[0]);
}

TEST_F(Compare, RefusesOneNanAndOneInf) {
  for (float bad : {kNan, kInf, -kInf}) {
    std::vector<float> out = good();
    out.back() = bad;
    const TensorCheck result = check(out);
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.reason, "not finite");
    EXPECT_EQ(result.worst, static_cast<std::int64_t>(out.size()) - 1);
  }
}

TEST_F(Compare, RefusesAllZero) {
  const TensorCheck result = check(std::vector<float>(ref.y.size(), 0.0f));
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.reason, "mostly zero");
}

// Half right is still zero for the most part when the other half is missing, and wrong when less
// is.
TEST_F(Compare, RefusesZerosInPlaces) {
  std::vector<float> out = good();
  out[3] = 0;
  EXPECT_EQ(check(out).reason, "error above bound");
  EXPECT_EQ(check(out).worst, 3);
}

TEST_F(Compare, RefusesACopyOfAnotherTensor) {
  std::vector<float> out(inputs.dy.begin(), inputs.dy.end());
  ASSERT_EQ(out.size(), ref.y.size());
  EXPECT_EQ(check(out).reason, "error above bound");
}

TEST_F(Compare, NamesTheOneWrongElement) {
  std::vector<float> out = good();
  out.back() += 1e-3f;
  const TensorCheck result = check(out);
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.reason, "error above bound");
  EXPECT_EQ(result.worst, static_cast<std::int64_t>(out.size()) - 1);
  EXPECT_EQ(result.value, out.back());
  EXPECT_EQ(result.expected, ref.y.back());
}

// Relative to the reference's size: zeros pass no tolerance because values are small.
TEST_F(Compare, JudgesTinyOutputsByTheirOwnScale) {
  std::vector<double> tiny = ref.y;
  for (double& v : tiny) v *= 1e-4;
  const std::vector<float> right = narrow(tiny);
  EXPECT_TRUE(check_tensor("y", right, tiny, bound).ok);
  EXPECT_FALSE(check_tensor("y", std::vector<float>(tiny.size(), 0.0f), tiny, bound).ok);
  std::vector<float> one_wrong = right;
  one_wrong.back() *= 1.01f;
  EXPECT_FALSE(check_tensor("y", one_wrong, tiny, bound).ok);
}

TEST_F(Compare, FindsWhatWasNeverWritten) {
  std::vector<float> out = good();
  for (std::size_t t = 1; t < 6; t += 2)  // a kernel that writes even time steps only
    std::memset(&out[t * 4 * 7], kPoisonByte, 4 * 7 * sizeof(float));
  const TensorCheck result = check(out);
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.reason, "never written");
  EXPECT_EQ(result.worst, 4 * 7);
}

TEST_F(Compare, TreatsAnAllZeroReferenceAsAbsolute) {
  const std::vector<double> zero(8, 0.0);
  EXPECT_TRUE(check_tensor("dx", std::vector<float>(8, 0.0f), zero, 1e-6).ok);
  EXPECT_TRUE(check_tensor("dx", std::vector<float>(8, 1e-7f), zero, 1e-6).ok);
  EXPECT_FALSE(check_tensor("dx", std::vector<float>(8, 1e-5f), zero, 1e-6).ok);
}

TEST_F(Compare, RefusesABrokenReferenceAndAWrongSize) {
  std::vector<double> broken = ref.y;
  broken[2] = std::nan("");
  EXPECT_EQ(check_tensor("y", good(), broken, bound).reason, "reference not finite");
  EXPECT_EQ(check_tensor("y", {}, ref.y, bound).reason, "wrong size");
}

TEST_F(Compare, PutsTheWorstTensorFirst) {
  Outputs<float> out = rounded();
  EXPECT_TRUE(check_outputs(problem, out, ref).front().ok);
  EXPECT_EQ(check_outputs(problem, out, ref).size(), 6u + 2 * 4);
  out.gradients[1].bias_hh.assign(out.gradients[1].bias_hh.size(), 0.0f);
  std::vector<TensorCheck> checks = check_outputs(problem, out, ref);
  EXPECT_EQ(checks.front().tensor, "db_hh[1]");
  EXPECT_EQ(checks.front().reason, "mostly zero");
  EXPECT_TRUE(checks[1].ok);
  out.gradients.pop_back();
  EXPECT_EQ(check_outputs(problem, out, ref).front().tensor, "gradients");
}

// Swapped gates of equal scale are the error that a loose bound would let through.
TEST_F(Compare, RefusesSwappedGates) {
  Inputs swapped = inputs;
  auto& w = swapped.weights[0].weight_ih;
  std::swap_ranges(w.begin(), w.begin() + 7 * 5, w.begin() + 7 * 5);
  const Outputs<double> wrong = oracle_step(problem, swapped);
  EXPECT_FALSE(check(narrow(wrong.y)).ok);
}

TEST(ErrorBound, HasTheFormOfItsDerivation) {
  const double eps = 0x1p-23;
  const Problem long_chain = parse_problem("lstm:T65537,B1,I1,H1,f32").value();
  EXPECT_NEAR(error_bound(long_chain, "y"), 4 * 18 * eps, 1e-8);
  EXPECT_NEAR(error_bound(long_chain, "dW_ih[0]"), 4 * 2 * 33 * std::pow(1000, 0.25) * eps, 1e-8);
  const Problem usual = parse_problem("lstm:T50,B64,I512,H512,f32").value();
  EXPECT_LT(error_bound(usual, "y"), 1e-5);
  EXPECT_LT(error_bound(usual, "dW_hh[0]"), 2e-5);
  const Problem half = parse_problem("lstm:T50,B64,I512,H512,bf16").value();
  EXPECT_EQ(error_bound(half, "y"), error_bound(usual, "y") * 0x1p16);
  const Problem both = parse_problem("lstm:T50,B64,I512,H512,D2,f32").value();
  EXPECT_EQ(error_bound(both, "dx"), error_bound(usual, "dx") * 2);
}

}  // namespace
}  // namespace rnntune::reference
