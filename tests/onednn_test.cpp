// SPDX-License-Identifier: Apache-2.0
// oneDNN as second reference, and the self-check that keeps a broken wrapper from blaming kernels.
#include "reference/onednn/onednn.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/compare.hpp"

namespace rnntune::reference {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Onednn : public testing::Test {
 protected:
  void SetUp() override {
    auto found = find_opponents("onednn", {open_device("cpu").value(), ""}, absent_);
    ASSERT_TRUE(found.ok());
    opponents_ = *found;
    std::string reasons;
    for (const std::string& reason : absent_) reasons += reason + "; ";
    if (opponents_.empty()) GTEST_SKIP() << "no oneDNN here: " << reasons;
  }

  std::vector<std::string> absent_;
  std::vector<std::shared_ptr<Opponent>> opponents_;
};

TEST_F(Onednn, VersionsNameTheirRuntimeAndDiffer) {
  for (const auto& opponent : opponents_) {
    EXPECT_EQ(opponent->name(), "onednn");
    EXPECT_THAT(opponent->version(), HasSubstr(" (OpenMP)"));
  }
  if (opponents_.size() == 2) {
    EXPECT_NE(opponents_[0]->version(), opponents_[1]->version());
  }
}

TEST_F(Onednn, AgreesWithTheReference) {
  for (const auto& opponent : opponents_)
    for (const char* text :
         {"lstm:L1,T1,B1,I1,H1,f32", "lstm:L1,T9,B4,I5,H33,f32", "lstm:L2,T7,B3,I16,H16,f32",
          "lstm:L3,T7,B3,I10,H17,bias1,f32", "lstm:L4,T5,B2,I8,H8,nobias,f32",
          "lstm:L1,T300,B1,I3,H5,f32", "lstm:L2,T4,B20,I200,H200,f32"})
      for (int threads : {1, 2}) {
        // On a busy machine every barrier of two threads costs a time slice.
        if (threads == 2 && std::string_view(text).find("T300") != std::string_view::npos) continue;
        SCOPED_TRACE(opponent->version() + " " + text + " threads " + std::to_string(threads));
        const Problem problem = parse_problem(text).value();
        const Inputs inputs = make_inputs(problem, 9);
        ASSERT_EQ(opponent->why_not(problem), "");
        const Outputs<double> ref = reference_step(problem, inputs);
        auto run = opponent->prepare(problem, inputs, ref, threads);
        ASSERT_TRUE(run.ok()) << run.error().message;
        EXPECT_THAT((*run)->algorithm(), HasSubstr("layers"));
        ASSERT_TRUE((*run)->step().ok());
        ASSERT_TRUE((*run)->step().ok());
        const auto out = (*run)->outputs();
        ASSERT_TRUE(out.ok()) << out.error().message;
        for (const TensorCheck& check : check_outputs(problem, *out, ref))
          EXPECT_TRUE(check.ok) << check.tensor << " " << check.reason << " error " << check.error
                                << " bound " << check.bound;
      }
}

TEST_F(Onednn, SaysWhatItCannotDo) {
  for (const char* text : {"gru:T1,B1,I1,H1,f32", "lstm:T1,B1,I1,H1,D2,f32",
                           "lstm:T1,B1,I4,H4,P2,f32", "lstm:T1,B1,I1,H1,bf16"}) {
    const Problem problem = parse_problem(text).value();
    for (const auto& opponent : opponents_) {
      EXPECT_NE(opponent->why_not(problem), "") << text;
      EXPECT_FALSE(opponent->prepare(problem, make_inputs(problem, 1), {}, 1).ok()) << text;
    }
  }
}

TEST(Opponents, AnUnknownNameListsTheKnownOnes) {
  std::vector<std::string> absent;
  auto found = find_opponents("onedn", {open_device("cpu").value(), ""}, absent);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message, HasSubstr("'onedn'"));
  EXPECT_THAT(found.error().message, HasSubstr("onednn"));
}

// A descriptor that silently does nothing useful (oneDNN issue 4306), or only adds up.
class FakeRun final : public OpponentRun {
 public:
  FakeRun(const Problem& problem, const Inputs& inputs, float growth)
      : ref_(oracle_step(problem, inputs)), growth_(growth) {}
  Status step() override {
    scale_ += growth_;
    return {};
  }
  Result<Outputs<float>> outputs() override {
    Outputs<float> out;
    out.gradients.resize(ref_.gradients.size());
    each_output(out, ref_, [&](const std::string&, auto& to, const auto& from) {
      for (double v : from) to.push_back(static_cast<float>(v) * scale_);
    });
    return out;
  }
  std::string algorithm() const override { return "fake"; }

 private:
  Outputs<double> ref_;
  float growth_, scale_ = growth_ == 0 ? 1.0f : 0.0f;
};

Prepare fake(float growth) {
  return [=](const Problem& problem, const Inputs& inputs,
             int) -> Result<std::unique_ptr<OpponentRun>> {
    return std::unique_ptr<OpponentRun>(std::make_unique<FakeRun>(problem, inputs, growth));
  };
}

class SilentRun final : public OpponentRun {
 public:
  Status step() override { return {}; }
  Result<Outputs<float>> outputs() override { return Outputs<float>(); }
  std::string algorithm() const override { return "silent"; }
};

TEST(SelfCheck, PassesARightWrapperAndFailsBrokenOnes) {
  EXPECT_EQ(self_check(fake(0)), "");
  EXPECT_THAT(self_check(fake(1)), StartsWith("reference broken: "));
  const Prepare silent = [](const Problem&, const Inputs&, int) {
    return Result<std::unique_ptr<OpponentRun>>(std::make_unique<SilentRun>());
  };
  EXPECT_THAT(self_check(silent), StartsWith("reference broken: "));
  const Prepare refusing = [](const Problem&, const Inputs&, int) {
    return Result<std::unique_ptr<OpponentRun>>(unsupported("no engine"));
  };
  EXPECT_THAT(self_check(refusing), HasSubstr("no engine"));
}

}  // namespace
}  // namespace rnntune::reference
