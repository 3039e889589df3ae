// SPDX-License-Identifier: Apache-2.0
// Walks every variant of the table x every instruction set of this CPU x the edge problems x
// configs drawn from the space, by the code that judges candidates in the tuner; then what no suite
// can say: absent states, fewer samples than the capacity, saturated gates, NaN in one sample. A
// new variant is covered by being in the table. RNNTUNE_SEED=N draws other configs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/simt/sanitizers.hpp"
#include "reference/step.hpp"
#include "rnntune/rnn.hpp"
#include "space.hpp"
#include "tuner/contenders/validate.hpp"
#include "tuner/records/suite.hpp"
#include "variants.hpp"

namespace rnntune {
namespace {

constexpr int kThreads = 3;            // not a power of two, and more than some machines have
constexpr std::int64_t kLong = 20000;  // T * B from which a problem gets one config, on one thread
#if defined(RNNTUNE_SIMT_ADDRESS_SANITIZER)
constexpr std::size_t kShare = 3;  // unoptimised and instrumented, a config takes 20 times as long
#else
constexpr std::size_t kShare = 1;
#endif

std::uint64_t seed() {
  static const std::uint64_t chosen = [] {
    const char* const text = std::getenv("RNNTUNE_SEED");
    const std::uint64_t seed = text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
    std::printf("RNNTUNE_SEED=%llu draws these configs, one of %zu that a full walk draws\n",
                static_cast<unsigned long long>(seed), kShare);
    return seed;
  }();
  return chosen;
}

struct Target {
  const Variant* variant;
  std::string isa;
};

void PrintTo(const Target& target, std::ostream* out) {
  *out << target.variant->name << " on " << target.isa;
}

std::vector<Target> targets() {
  std::vector<Target> all;
  const auto device = open_device("cpu");
  if (!device.ok()) return all;
  for (const Variant* variant : variants()) {
    if (variant->backend != (*device)->info().backend) continue;
    for (const std::string& isa : (*device)->info().isa) all.push_back({variant, isa});
  }
  return all;
}

// References are dear and the same for every target.
const tuner::Case& case_of(const Problem& problem) {
  static std::map<std::string, std::shared_ptr<const tuner::Case>> cases;
  auto& at = cases[to_string(problem)];
  if (at == nullptr) at = tuner::make_case(problem, seed());
  return *at;
}

Problem problem_of(std::string_view text) {
  Result<Problem> problem = parse_problem(text);
  EXPECT_TRUE(problem.ok()) << text;
  return problem.ok() ? *problem : Problem{};
}

class VariantTest : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    device_ = *open_device("cpu", {kThreads, GetParam().isa});
    random_.seed(seed());
  }

  // The built-in config, then others of the space at random, without repetition; all of them if
  // there are no more.
  std::vector<Config> configs(const Problem& problem, std::size_t count) {
    const Variant& variant = *GetParam().variant;
    const Config first = variant.built_in(problem, device_->info());
    std::vector<Config> all;
    Space(problem, device_->info()).each([&](const Config& config) {
      const bool fits = problem.time * problem.batch < kLong || config.get_int("threads", 1) == 1;
      if (config.variant == variant.name && fits && config != first) all.push_back(config);
      return true;
    });
    std::shuffle(all.begin(), all.end(), random_);
    if (problem.time * problem.batch < kLong || all.empty()) all.insert(all.begin(), first);
    all.resize(std::min(all.size(), std::max<std::size_t>(count / kShare, 1)));
    return all;
  }

  std::string why_not(const Problem& problem) const {
    return GetParam().variant->why_not(problem, device_->info());
  }

  std::string repeat(const Problem& problem, const Config& config) const {
    return "RNNTUNE_SEED=" + std::to_string(seed()) + ": " + to_string(problem) + " " +
           to_string(config) + " on " + GetParam().isa;
  }

  std::shared_ptr<Device> device_;
  std::mt19937_64 random_;
};

// Whether this target meets the edge problem of this index. Under the sanitizers every problem goes
// to one instruction set of each variant, a long one to one variant; the seed draws which.
bool drawn(const Target& target, std::size_t index, bool is_long) {
  const std::vector<Target> all = targets();
  // Long ones try the counters of the plan, which are the same for every instruction set.
  if (is_long && target.isa != all.front().isa) return false;
  if (kShare == 1) return true;
  std::vector<std::string> names;  // to choose from
  for (const Target& other : all) {
    if (is_long && other.isa == all.front().isa) names.push_back(other.variant->name);
    if (!is_long && other.variant == target.variant) names.push_back(other.isa);
  }
  return names[(index + seed()) % names.size()] == (is_long ? target.variant->name : target.isa);
}

TEST_P(VariantTest, ComputesTheEdgeProblems) {
  const auto suite = tuner::load_suite(std::string(RNNTUNE_SUITES) + "/edge.json");
  ASSERT_TRUE(suite.ok()) << suite.error().message;
  int computed = 0;
  for (std::size_t i = 0; i < suite->problems.size(); ++i) {
    const tuner::SuiteProblem& row = suite->problems[i];
    const bool is_long = row.problem.time * row.problem.batch >= kLong;
    if (!why_not(row.problem).empty() || !drawn(GetParam(), i, is_long)) continue;
    for (const Config& config : configs(row.problem, is_long ? 1 : 6)) {
      auto plan = GetParam().variant->make(row.problem, device_, config);
      ASSERT_TRUE(plan.ok()) << plan.error().message << "; " << repeat(row.problem, config);
      const tuner::Verdict verdict = tuner::validate(**plan, device_, case_of(row.problem));
      EXPECT_TRUE(verdict.ok()) << row.name << ": " << verdict.reason << "; "
                                << repeat(row.problem, config);
      EXPECT_TRUE(verdict.repeatable) << row.name << "; " << repeat(row.problem, config);
      ++computed;
    }
  }
  EXPECT_GT(computed, 0) << "no edge problem fits the variant";
}

TEST_P(VariantTest, ComputesFewerStepsAndSamplesThanTheCapacity) {
  const Problem capacity = problem_of("lstm:L2,T9,B7,I5,H19,f32");
  if (const std::string why = why_not(capacity); !why.empty()) GTEST_SKIP() << why;
  for (const Config& config : configs(capacity, 24)) {
    auto plan = GetParam().variant->make(capacity, device_, config);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    for (const char* text :
         {"lstm:L2,T1,B1,I5,H19,f32", "lstm:L2,T9,B2,I5,H19,f32", "lstm:L2,T5,B7,I5,H19,f32"}) {
      const tuner::Verdict verdict = tuner::validate(**plan, device_, case_of(problem_of(text)));
      EXPECT_TRUE(verdict.ok()) << text << ": " << verdict.reason << "; "
                                << repeat(capacity, config);
    }
  }
}

// A training step through the public interface, with every buffer a plain vector. Outputs start as
// NaN. Members that are cleared before run() stay null pointers.
struct Step {
  Problem problem;
  reference::Inputs in;
  reference::Outputs<float> out;
  bool want_states = true;  // h_n, c_n, dx, dh_0, dc_0

  Step(const Problem& p, reference::Inputs inputs) : problem(p), in(std::move(inputs)) {
    const TensorCounts counts = tensor_counts(p);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const auto fill = [&](std::int64_t count) {
      return std::vector<float>(std::size_t(count), nan);
    };
    out = {fill(counts.y),
           fill(counts.h),
           fill(counts.c),
           fill(counts.x),
           fill(counts.h),
           fill(counts.c),
           {}};
    for (const auto& w : in.weights) {
      const auto zeros = [](const auto& like) { return std::vector<float>(like.size(), 0.0f); };
      out.gradients.push_back({zeros(w.weight_ih), zeros(w.weight_hh), zeros(w.bias_ih),
                               zeros(w.bias_hh), zeros(w.weight_hr)});
    }
  }

  static const float* input(const std::vector<float>& tensor) {
    return tensor.empty() ? nullptr : tensor.data();
  }
  float* wanted(std::vector<float>& tensor) const { return want_states ? tensor.data() : nullptr; }

  Status run(std::shared_ptr<Device> device, const Config& config) {
    RnnOptions options;
    options.default_databases = false;
    options.config = config;
    auto rnn = Rnn::create(problem, device, options);
    if (!rnn.ok()) return rnn.error();
    std::vector<std::vector<float>> memory;
    const auto buffer = [&](std::size_t bytes) {
      memory.emplace_back(bytes / sizeof(float) + 32, std::numeric_limits<float>::quiet_NaN());
      void* data = memory.back().data();
      std::size_t room = memory.back().size() * sizeof(float);
      return Memory{std::align(64, bytes, data, room), bytes};
    };
    const Buffers buffers{buffer(rnn->packed_bytes()), buffer(rnn->workspace_bytes()),
                          buffer(rnn->reserve_bytes())};
    const std::vector<LayerWeights> weights = reference::weight_pointers(in);
    if (Status s = rnn->pack(weights.data(), buffers.packed); !s.ok()) return s;
    const Forward forward{0,
                          0,
                          input(in.x),
                          input(in.h_0),
                          input(in.c_0),
                          out.y.data(),
                          wanted(out.h_n),
                          wanted(out.c_n)};
    if (Status s = rnn->forward(Mode::training, forward, buffers); !s.ok()) return s;
    const BackwardData data{input(in.x),      input(in.h_0),   input(in.c_0),  out.y.data(),
                            input(in.dy),     input(in.dh_n),  input(in.dc_n), wanted(out.dx),
                            wanted(out.dh_0), wanted(out.dc_0)};
    if (Status s = rnn->backward_data(data, buffers); !s.ok()) return s;
    std::vector<LayerGradients> gradients;
    const auto pointer = [](std::vector<float>& t) { return t.empty() ? nullptr : t.data(); };
    for (auto& g : out.gradients) {
      gradients.push_back({pointer(g.weight_ih), pointer(g.weight_hh), pointer(g.bias_ih),
                           pointer(g.bias_hh), pointer(g.weight_hr)});
    }
    return rnn->backward_weights({input(in.x), input(in.h_0), out.y.data(), gradients.data()},
                                 buffers);
  }
};

TEST_P(VariantTest, TakesAbsentStatesAsZeroAndLeavesUnwantedOutputsAlone) {
  for (const char* text : {"lstm:L2,T4,B3,I6,H9,f32", "lstm:L1,T1,B5,I2,H17,bias1,f32"}) {
    const Problem problem = problem_of(text);
    if (const std::string why = why_not(problem); !why.empty()) GTEST_SKIP() << why;
    reference::Inputs zeros = reference::make_inputs(problem, seed());
    for (auto* state : {&zeros.h_0, &zeros.c_0, &zeros.dh_n, &zeros.dc_n}) {
      std::fill(state->begin(), state->end(), 0.0f);
    }
    const reference::Outputs<double> expected = reference::oracle_step(problem, zeros);
    for (const Config& config : configs(problem, 24)) {
      for (const bool want_states : {true, false}) {
        Step step(problem, zeros);
        step.want_states = want_states;
        for (auto* state : {&step.in.h_0, &step.in.c_0, &step.in.dh_n, &step.in.dc_n}) {
          state->clear();
        }
        const Status status = step.run(device_, config);
        ASSERT_TRUE(status.ok()) << status.error().message << "; " << repeat(problem, config);
        reference::Outputs<double> wanted = expected;
        if (!want_states) {
          wanted.h_n = wanted.c_n = wanted.dx = wanted.dh_0 = wanted.dc_0 = {};
          step.out.h_n = step.out.c_n = step.out.dx = step.out.dh_0 = step.out.dc_0 = {};
        }
        for (const auto& check : reference::check_outputs(problem, step.out, wanted)) {
          EXPECT_TRUE(check.ok) << check.tensor << ": " << check.reason << ", error " << check.error
                                << "; " << repeat(problem, config);
        }
      }
    }
  }
}

double sigma(double x) { return 1 / (1 + std::exp(-x)); }

// One layer and time step in which all four pre-activations of sample b are values[b]: I = 1,
// weight_ih = 1, nothing else. c_0 = 0.5.
Step saturated(std::int64_t hidden, const std::vector<float>& values) {
  const Problem problem = problem_of("lstm:L1,T1,B" + std::to_string(values.size()) + ",I1,H" +
                                     std::to_string(hidden) + ",f32");
  reference::Inputs in = reference::make_inputs(problem, seed());
  in.x = values;
  auto& w = in.weights.front();
  std::fill(w.weight_ih.begin(), w.weight_ih.end(), 1.0f);
  for (auto* tensor : {&w.weight_hh, &w.bias_ih, &w.bias_hh, &in.h_0}) {
    std::fill(tensor->begin(), tensor->end(), 0.0f);
  }
  std::fill(in.c_0.begin(), in.c_0.end(), 0.5f);
  return {problem, std::move(in)};
}

template <class Visit>
void each_value(const reference::Outputs<float>& out, Visit visit) {
  reference::each_output(out, out, [&](const std::string& name, const auto& tensor, const auto&) {
    for (std::size_t i = 0; i < tensor.size(); ++i) visit(name, i, tensor[i]);
  });
}

TEST_P(VariantTest, SaturatesWithoutLosingSignOrFiniteness) {
  const std::vector<float> values{0,  -0.0f, 20,  -20,  40,   -40,   88,    -88,
                                  89, -89,   104, -104, 1000, -1000, 3e38f, -3e38f};
  for (const std::int64_t hidden : {1, 7, 8, 9, 16, 17}) {
    Step step = saturated(hidden, values);
    if (const std::string why = why_not(step.problem); !why.empty()) GTEST_SKIP() << why;
    for (const Config& config : configs(step.problem, 6)) {
      SCOPED_TRACE(repeat(step.problem, config));
      Step run = step;
      const Status status = run.run(device_, config);
      ASSERT_TRUE(status.ok()) << status.error().message;
      for (std::size_t b = 0; b < values.size(); ++b) {
        const double s = sigma(values[b]), c = s * 0.5 + s * std::tanh(double(values[b]));
        for (std::size_t u = 0; u < std::size_t(hidden); ++u) {
          const std::size_t at = b * std::size_t(hidden) + u;
          EXPECT_NEAR(run.out.c_n[at], c, 1e-6) << "pre-activation " << values[b] << " unit " << u;
          EXPECT_NEAR(run.out.y[at], s * std::tanh(c), 1e-6) << values[b] << " unit " << u;
          EXPECT_EQ(run.out.y[at], run.out.y[b * std::size_t(hidden)]) << "body against tail";
        }
      }
      each_value(run.out, [](const std::string& name, std::size_t i, float value) {
        EXPECT_TRUE(std::isfinite(value)) << name << " element " << i;
      });
    }
  }
}

TEST_P(VariantTest, KeepsNanInItsSample) {
  for (const std::int64_t hidden : {1, 7, 16, 17, 33}) {
    const Problem problem = problem_of("lstm:L2,T3,B5,I3,H" + std::to_string(hidden) + ",f32");
    if (const std::string why = why_not(problem); !why.empty()) GTEST_SKIP() << why;
    constexpr std::size_t kSample = 2, kBatch = 5;
    reference::Inputs in = reference::make_inputs(problem, seed());
    in.x[(1 * kBatch + kSample) * 3 + 1] = std::numeric_limits<float>::quiet_NaN();  // time step 1
    for (const Config& config : configs(problem, 6)) {
      SCOPED_TRACE(repeat(problem, config));
      Step step(problem, in);
      const Status status = step.run(device_, config);
      ASSERT_TRUE(status.ok()) << status.error().message;
      const std::size_t h = std::size_t(hidden);
      for (std::size_t i = 0; i < step.out.y.size(); ++i) {
        const bool hit = i / h % kBatch == kSample && i / h / kBatch >= 1;
        ASSERT_EQ(std::isnan(step.out.y[i]), hit) << "y element " << i;
      }
      for (std::size_t i = 0; i < step.out.dx.size(); ++i) {
        ASSERT_EQ(std::isnan(step.out.dx[i]), i / 3 % kBatch == kSample) << "dx element " << i;
      }
      for (const auto* state : {&step.out.h_n, &step.out.c_n, &step.out.dh_0, &step.out.dc_0}) {
        for (std::size_t i = 0; i < state->size(); ++i) {
          ASSERT_EQ(std::isnan((*state)[i]), i / h % kBatch == kSample) << "state element " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, VariantTest, testing::ValuesIn(targets()), [](const auto& info) {
  return std::string(info.param.variant->name) + "_" + info.param.isa;
});

}  // namespace
}  // namespace rnntune
