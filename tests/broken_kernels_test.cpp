// SPDX-License-Identifier: Apache-2.0
// The checker is tested by kernels that are wrong on purpose: a right plan, broken in one place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "space.hpp"
#include "tuner/contenders/validate.hpp"

namespace rnntune::tuner {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const char* const kProblem = "lstm:L2,T5,B3,I7,H9";

// What a broken kernel does after (or instead of) the right one. `call` runs the right one.
struct Faults {
  using Call = std::function<Status()>;
  std::function<Status(std::vector<LayerWeights>&)> pack = nullptr;  // may change what is packed
  std::function<Status(Mode, const Forward&, const Call&)> forward = nullptr;
  std::function<Status(const BackwardData&, const Call&)> backward_data = nullptr;
  // The gradients that the right kernel gets may be redirected.
  std::function<Status(std::vector<LayerGradients>&, const std::function<Status()>&)>
      backward_weights = nullptr;
};

class Broken : public Plan {
 public:
  Broken(Plan& right, const Problem& problem, Faults faults)
      : right_(right), layers_(static_cast<std::size_t>(problem.layers)), faults_(faults) {}

  PlanSizes sizes() const override { return right_.sizes(); }

  Status pack(const LayerWeights* layers, const PlanBuffers& buffers, Stream stream) override {
    std::vector<LayerWeights> weights(layers, layers + layers_);
    if (faults_.pack) {
      if (Status status = faults_.pack(weights); !status.ok()) return status;
    }
    return right_.pack(weights.data(), buffers, stream);
  }

  Status forward(Mode mode, Extent extent, const Forward& args, const PlanBuffers& buffers,
                 Stream stream) override {
    const auto call = [&] { return right_.forward(mode, extent, args, buffers, stream); };
    return faults_.forward ? faults_.forward(mode, args, call) : call();
  }

  Status backward_data(Extent extent, const BackwardData& args, const PlanBuffers& buffers,
                       Stream stream) override {
    const auto call = [&] { return right_.backward_data(extent, args, buffers, stream); };
    return faults_.backward_data ? faults_.backward_data(args, call) : call();
  }

  Status backward_weights(Extent extent, const BackwardWeights& args, const PlanBuffers& buffers,
                          Stream stream) override {
    std::vector<LayerGradients> gradients(args.gradients, args.gradients + layers_);
    BackwardWeights redirected = args;
    redirected.gradients = gradients.data();
    const auto call = [&] { return right_.backward_weights(extent, redirected, buffers, stream); };
    return faults_.backward_weights ? faults_.backward_weights(gradients, call) : call();
  }

 private:
  Plan& right_;
  std::size_t layers_;
  Faults faults_;
};

class BrokenKernels : public testing::Test {
 protected:
  static void SetUpTestSuite() { case_ = make_case(*parse_problem(kProblem), 1); }
  static void TearDownTestSuite() { case_.reset(); }

  void SetUp() override {
    device_ = *open_device("cpu", {.threads = 2, .isa = {}});
    const Config config = *Space(problem(), device_->info()).built_in();
    right_ = std::move(*find_variant("cpu", config.variant)->make(problem(), device_, config));
  }

  const Problem& problem() const { return case_->problem; }
  std::int64_t width() const { return problem().output(); }
  std::int64_t outputs() const { return problem().time * problem().batch * width(); }

  Verdict judge(const Faults& faults) {
    Broken broken(*right_, problem(), faults);
    return validate(broken, device_, *case_);
  }

  void expect_rejected(const Faults& faults, Outcome outcome, const std::string& reason) {
    const Verdict verdict = judge(faults);
    EXPECT_STREQ(to_string(verdict.outcome), to_string(outcome)) << verdict.reason;
    EXPECT_THAT(verdict.reason, HasSubstr(reason));
  }

  // A fault that changes y after a right forward.
  static Faults after_forward(std::function<void(const Forward&)> change) {
    return {.forward = [change](Mode, const Forward& args, const Faults::Call& call) {
      Status status = call();
      change(args);
      return status;
    }};
  }

  static std::shared_ptr<const Case> case_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Plan> right_;
};

std::shared_ptr<const Case> BrokenKernels::case_;

TEST_F(BrokenKernels, TheRightOnePasses) {
  const Verdict verdict = judge({});
  EXPECT_TRUE(verdict.ok()) << verdict.reason;
  EXPECT_TRUE(verdict.repeatable);
  EXPECT_EQ(verdict.validation.reference, "oracle");
  EXPECT_GT(verdict.validation.error, 0);
  EXPECT_LE(verdict.validation.error, verdict.validation.bound);
}

TEST_F(BrokenKernels, TwoGatesSwapped) {
  const auto rows = static_cast<std::size_t>(problem().hidden * problem().layer_input(0));
  std::vector<float> swapped;
  const Faults faults{.pack = [&](std::vector<LayerWeights>& layers) -> Status {
    swapped.assign(layers[0].weight_ih, layers[0].weight_ih + 4 * rows);
    std::swap_ranges(swapped.begin() + rows, swapped.begin() + 2 * rows,
                     swapped.begin() + 2 * rows);  // f and g
    layers[0].weight_ih = swapped.data();
    return {};
  }};
  expect_rejected(faults, Outcome::wrong_result, "error above bound");
}

TEST_F(BrokenKernels, MissingBiasGradient) {
  std::vector<float> elsewhere(static_cast<std::size_t>(4 * problem().hidden));
  const Faults faults{
      .backward_weights = [&](std::vector<LayerGradients>& gradients, const Faults::Call& call) {
        gradients[1].bias_hh = elsewhere.data();
        return call();
      }};
  expect_rejected(faults, Outcome::untrusted, "db_hh[1]: mostly zero");
}

TEST_F(BrokenKernels, OneWrongBiasGradient) {
  const Faults faults{
      .backward_weights = [&](std::vector<LayerGradients>& gradients, const Faults::Call& call) {
        float& last = gradients[0].bias_ih[4 * problem().hidden - 1];
        const float before = last;
        Status status = call();
        last = before;
        return status;
      }};
  expect_rejected(faults, Outcome::wrong_result, "db_ih[0]: error above bound: element 35 is 0");
}

TEST_F(BrokenKernels, OneUnwrittenTailElement) {
  const std::int64_t last = outputs() - 1;
  const Faults faults{.forward = [last](Mode, const Forward& args, const Faults::Call& call) {
    const float before = args.y[last];
    Status status = call();
    args.y[last] = before;
    return status;
  }};
  expect_rejected(faults, Outcome::wrong_result, "y: never written: element 134 ");
}

TEST_F(BrokenKernels, NoWeightGradientAtAll) {
  const Faults faults{.backward_weights = [](std::vector<LayerGradients>&, const Faults::Call&) {
    return Status();
  }};
  expect_rejected(faults, Outcome::untrusted, "mostly zero");
}

TEST_F(BrokenKernels, OnlyEvenTimeSteps) {
  const std::int64_t step = problem().batch * width(), steps = problem().time;
  const Faults faults{.forward = [=](Mode, const Forward& args, const Faults::Call& call) {
    const std::vector<float> before(args.y, args.y + step * steps);
    Status status = call();
    for (std::int64_t t = 1; t < steps; t += 2) {
      std::copy_n(before.begin() + t * step, step, args.y + t * step);
    }
    return status;
  }};
  expect_rejected(faults, Outcome::wrong_result, "y: never written");
  // Also right after a correct one: nothing of its results is left to pass on.
  EXPECT_TRUE(judge({}).ok());
  expect_rejected(faults, Outcome::wrong_result, "y: never written");
}

TEST_F(BrokenKernels, WritesOneElementTooFar) {
  const std::int64_t count = outputs();
  expect_rejected(after_forward([=](const Forward& args) { args.y[count] = 0; }),
                  Outcome::wrong_result, "wrote outside y, 0 bytes after its end");
  expect_rejected(after_forward([](const Forward& args) { args.h_n[-1] = 0; }),
                  Outcome::wrong_result, "wrote outside h_n, 1 bytes before its start");
}

TEST_F(BrokenKernels, ModifiesItsInput) {
  expect_rejected(after_forward([](const Forward& args) { const_cast<float*>(args.x)[3] += 1; }),
                  Outcome::wrong_result, "modified its input x");
  const Faults weights{.pack = [](std::vector<LayerWeights>& layers) -> Status {
    const_cast<float*>(layers[1].bias_hh)[0] = 0;
    return {};
  }};
  expect_rejected(weights, Outcome::wrong_result, "modified its input b_hh[1]");
}

TEST_F(BrokenKernels, BackwardModifiesY) {
  const Faults faults{.backward_data = [](const BackwardData& args, const Faults::Call& call) {
    Status status = call();
    float& y = const_cast<float*>(args.y)[0];
    y = std::nextafter(y, 2.0f);
    return status;
  }};
  expect_rejected(faults, Outcome::wrong_result, "backward modified y");
}

TEST_F(BrokenKernels, AllZeroOutput) {
  const std::int64_t count = outputs();
  expect_rejected(after_forward([=](const Forward& args) { std::fill_n(args.y, count, 0.0f); }),
                  Outcome::untrusted, "y: mostly zero");
}

TEST_F(BrokenKernels, NotFiniteOutput) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    expect_rejected(after_forward([=](const Forward& args) { args.c_n[1] = bad; }),
                    Outcome::wrong_result, "c_n: not finite: element 1 ");
  }
}

TEST_F(BrokenKernels, CopyOfTheInput) {
  const std::int64_t count = problem().time * problem().batch * problem().input;
  expect_rejected(after_forward([=](const Forward& args) { std::copy_n(args.x, count, args.y); }),
                  Outcome::wrong_result, "y: error above bound");
}

TEST_F(BrokenKernels, OverwritesGradientsInsteadOfAdding) {
  const auto count = static_cast<std::size_t>(4 * problem().hidden * width());
  const Faults faults{
      .backward_weights = [=](std::vector<LayerGradients>& gradients, const Faults::Call& call) {
        std::fill_n(gradients[0].weight_hh, count, 0.0f);
        return call();
      }};
  expect_rejected(faults, Outcome::wrong_result, "accumulating: dW_hh[0]: error above bound");
}

TEST_F(BrokenKernels, AddsGradientsTwice) {
  const Faults faults{
      .backward_weights = [](std::vector<LayerGradients>&, const Faults::Call& call) {
        Status status = call();
        return status.ok() ? call() : status;
      }};
  // Whatever a second call does, the sum is not one gradient.
  EXPECT_FALSE(judge(faults).ok());
}

TEST_F(BrokenKernels, WrongInInferenceOnly) {
  const Faults faults{.forward = [](Mode mode, const Forward& args, const Faults::Call& call) {
    Status status = call();
    if (mode == Mode::inference) args.y[0] += 0.01f;
    return status;
  }};
  expect_rejected(faults, Outcome::wrong_result, "inference: y: error above bound: element 0 ");
}

TEST_F(BrokenKernels, AFailedCallIsNoResult) {
  const Faults faults{.backward_data = [](const BackwardData&, const Faults::Call&) -> Status {
    return Error{ErrorCode::internal, "no such stream"};
  }};
  expect_rejected(faults, Outcome::launch_failed, "backward_data: no such stream");
}

TEST_F(BrokenKernels, NotRepeatableIsAFlag) {
  int calls = 0;
  const Verdict verdict = judge(after_forward([&](const Forward& args) {
    if (++calls == 2) args.y[5] = std::nextafter(args.y[5], 2.0f);
  }));
  EXPECT_TRUE(verdict.ok()) << verdict.reason;
  EXPECT_FALSE(verdict.repeatable);
}

TEST_F(BrokenKernels, ResultDependsOnOldScratch) {
  // Poisoned scratch makes what was never written visible.
  const std::size_t bytes = right_->sizes().packed;
  ASSERT_GT(bytes, 0u);
  class SkipsPack : public Broken {
   public:
    using Broken::Broken;
    Status pack(const LayerWeights*, const PlanBuffers&, Stream) override { return {}; }
  };
  SkipsPack broken(*right_, problem(), {});
  const Verdict verdict = validate(broken, device_, *case_);
  EXPECT_EQ(verdict.outcome, Outcome::wrong_result) << verdict.reason;
}

}  // namespace
}  // namespace rnntune::tuner
