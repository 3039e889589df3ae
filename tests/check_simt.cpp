// SPDX-License-Identifier: Apache-2.0
// Walks every CUDA variant on the emulated device against the oracle: all kernel instances, all
// pairs of parameter values, edge problems, in order and in three random orders of threads, blocks
// and streams; and once under the race checker. That nothing is left out is asserted, too.
// RNNTUNE_SEED=N draws other configs and orders. RNNTUNE_DEVICE=cuda:0 walks on a GPU instead,
// which has an order of its own and no race checker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cuda/instances.hpp"
#include "simt/device.hpp"
#include "space.hpp"
#include "tests/gpu_under_test.hpp"
#include "tests/pairwise.hpp"
#include "tuner/contenders/step_run.hpp"
#include "tuner/contenders/validate.hpp"
#include "tuner/records/suite.hpp"
#include "variants.hpp"

namespace rnntune {
namespace {

constexpr std::int64_t kMostSteps = 16;
constexpr std::int64_t kMostSamples = 100;

std::uint64_t seed() {
  const char* const text = std::getenv("RNNTUNE_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

std::shared_ptr<Device> open(const simt::OpenOptions& options) {
  return fixtures::gpu_under_test(options);
}

Problem problem_of(std::string_view text) {
  Result<Problem> problem = parse_problem(text);
  EXPECT_TRUE(problem.ok()) << text;
  return problem.ok() ? *problem : Problem{};
}

const tuner::Case& case_of(const Problem& problem) {
  static std::map<std::string, std::shared_ptr<const tuner::Case>> cases;
  auto& at = cases[to_string(problem)];
  if (at == nullptr) at = tuner::make_case(problem, seed());
  return *at;
}

std::string what(const Problem& problem, const Config& config, std::uint64_t order) {
  return "RNNTUNE_SEED=" + std::to_string(seed()) + ": " + to_string(problem) + " '" +
         to_string(config) + "' in order " + std::to_string(order);
}

struct Walk {
  std::shared_ptr<Device> device;
  std::uint64_t order = 0;

  explicit Walk(const simt::OpenOptions& options) : device(open(options)), order(options.seed) {}

  std::unique_ptr<Plan> plan(const Problem& problem, const Config& config) const {
    const Variant* const variant = find_variant(device->info().backend, config.variant);
    auto plan = variant->make(problem, device, config);
    EXPECT_TRUE(plan.ok()) << plan.error().message << "; " << what(problem, config, order);
    return plan.ok() ? std::move(*plan) : nullptr;
  }

  void validate(const Problem& capacity, const Config& config, const tuner::Case& which) const {
    const std::unique_ptr<Plan> made = plan(capacity, config);
    if (made == nullptr) return;
    const tuner::Verdict verdict = tuner::validate(*made, device, which);
    EXPECT_TRUE(verdict.ok()) << verdict.reason << "; " << what(which.problem, config, order);
    // In another order of threads atomic sums round otherwise; in the same one they may not.
    if (config.get("bias_gradient") != "atomic") {
      EXPECT_TRUE(verdict.repeatable) << what(which.problem, config, order);
    }
  }
  void validate(const Problem& problem, const Config& config) const {
    validate(problem, config, case_of(problem));
  }

  // On memory as an allocator gives it: vectors of four.
  void step_aligned(const Problem& problem, const Config& config) const {
    const std::unique_ptr<Plan> made = plan(problem, config);
    const tuner::Case& which = case_of(problem);
    auto run =
        tuner::StepRun::create(*made, device, problem, which.inputs, tuner::Placement::aligned);
    ASSERT_TRUE(run.ok());
    ASSERT_TRUE((*run)->reset().ok());
    ASSERT_TRUE((*run)->step(true).ok());
    const auto out = (*run)->outputs();
    ASSERT_TRUE(out.ok()) << out.error().message << "; " << what(problem, config, order);
    for (const auto& check : reference::check_outputs(problem, *out, which.expected)) {
      EXPECT_TRUE(check.ok) << check.tensor << ": " << check.reason << "; "
                            << what(problem, config, order);
    }
  }
};

// A few configs that hold all pairs of values, for each variant.
std::vector<Config> cover(const Problem& problem, std::uint64_t draw) {
  const DeviceInfo info = open({})->info();
  const Space space(problem, info);
  std::vector<Config> all;
  for (const Space::Branch& branch : space.branches()) {
    if (!branch.why_not.empty()) continue;
    for (Config& config : PairwiseCover(space, branch, seed() + draw).configs()) {
      all.push_back(std::move(config));
    }
  }
  return all;
}

// It has every value of every parameter; chunks of 16 take more than 16 time steps.
Problem whole_space_problem() { return problem_of("lstm:L2,T18,B3,I5,H8,f32"); }

std::vector<Problem> edge_problems() {
  const auto suite = tuner::load_suite(fixtures::suites_folder() + "/edge.json");
  EXPECT_TRUE(suite.ok());
  std::vector<Problem> all;
  for (const tuner::SuiteProblem& row : suite->problems) {
    Problem problem = row.problem;
    problem.time = std::min(problem.time, kMostSteps);
    problem.batch = std::min(problem.batch, kMostSamples);
    all.push_back(problem);
  }
  // More layers than are in turn with their buffers.
  all.push_back(problem_of("lstm:L5,T7,B3,I4,H6,f32"));
  return all;
}

// "chunk=4,launch=graph" for each two parameters of a config.
std::set<std::string> pairs_of(const Config& config) {
  std::set<std::string> pairs;
  for (std::size_t i = 0; i < config.params.size(); ++i) {
    for (std::size_t j = i + 1; j < config.params.size(); ++j) {
      const auto& [a, x] = config.params[i];
      const auto& [b, y] = config.params[j];
      pairs.insert(config.variant + ":" + a + "=" + x + "," + b + "=" + y);
    }
  }
  return pairs;
}

// Of values of two parameters, whether or not a constraint forbids them together.
std::size_t count_pairs(const Space::Branch& branch) {
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < branch.parameters.size(); ++i) {
    for (std::size_t j = i + 1; j < branch.parameters.size(); ++j) {
      pairs += branch.parameters[i].values.size() * branch.parameters[j].values.size();
    }
  }
  return pairs;
}

// Every pair is in a config of the cover or in none of the space.
TEST(Cover, LeavesOutOnlyWhatTheSpaceForbids) {
  const Space space(whole_space_problem(), open({})->info());
  ASSERT_EQ(space.branches().size(), 2u);
  const Space::Branch& branch = space.branches().front();
  PairwiseCover pointwise(space, branch, 1);
  std::set<std::string> covered;
  const std::vector<Config> configs = pointwise.configs();
  for (const Config& config : configs) covered.merge(pairs_of(config));
  EXPECT_LT(configs.size(), 40u);
  EXPECT_THAT(pointwise.open(),
              testing::UnorderedElementsAre("forward=thb,vector=4", "chunk=0,schedule=wavefront"));
  EXPECT_EQ(covered.size(), count_pairs(branch) - pointwise.open().size());
  std::int64_t forbidden = 0;
  space.each([&](const Config& config) {
    const bool vector = config.get("forward") == "thb" && config.get("vector") == "4";
    const bool wavefront = config.get("chunk") == "0" && config.get("schedule") == "wavefront";
    forbidden += vector || wavefront;
    return true;
  });
  EXPECT_EQ(forbidden, 0);
}

class OrderTest : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, OrderTest, testing::Values(0, 1, 2, 3));

// Each order takes its share of a problem's cover, so that all of them together hold all pairs.
TEST_P(OrderTest, PairsOfParametersOnEdgeProblems) {
  const Walk walk({.seed = GetParam() == 0 ? 0 : seed() * 4 + GetParam()});
  std::size_t number = 0;
  for (const Problem& problem : edge_problems()) {
    for (const Config& config : cover(problem, number)) {
      if (number++ % 4 == GetParam()) walk.validate(problem, config);
    }
  }
  EXPECT_GT(number, 200u);
}

TEST_P(OrderTest, AllPairsOfParameters) {
  const Walk walk({.seed = GetParam()});
  std::set<std::string> pairs;
  for (const Config& config : cover(whole_space_problem(), GetParam())) {
    walk.validate(whole_space_problem(), config);
    pairs.merge(pairs_of(config));
  }
  const Space space(whole_space_problem(), walk.device->info());
  std::size_t all = 0;
  for (const Space::Branch& branch : space.branches()) all += count_pairs(branch);
  EXPECT_EQ(pairs.size(), all - 2) << "the two of Cover are forbidden";
}

TEST_P(OrderTest, FewerStepsAndSamplesThanTheCapacity) {
  const Walk walk({.seed = GetParam()});
  const Problem capacity = problem_of("lstm:L2,T9,B37,I5,H20,f32");
  for (const Config& config : cover(capacity, GetParam())) {
    const std::unique_ptr<Plan> plan = walk.plan(capacity, config);
    ASSERT_NE(plan, nullptr);
    for (const char* text :
         {"lstm:L2,T1,B1,I5,H20,f32", "lstm:L2,T9,B2,I5,H20,f32", "lstm:L2,T5,B37,I5,H20,f32"}) {
      const auto verdict = tuner::validate(*plan, walk.device, case_of(problem_of(text)));
      EXPECT_TRUE(verdict.ok()) << text << ": " << verdict.reason << "; "
                                << what(capacity, config, GetParam());
    }
  }
}

TEST_P(OrderTest, AbsentStates) {
  const Walk walk({.seed = GetParam()});
  for (const char* text : {"lstm:L2,T5,B3,I6,H12,f32", "lstm:L1,T1,B35,I2,H17,bias1,f32"}) {
    const Problem problem = problem_of(text);
    const auto bare = tuner::make_bare_case(problem, seed());
    for (const Config& config : cover(problem, GetParam())) {
      walk.validate(problem, config, *bare);
    }
  }
}

// The kernel instances that were launched. An entry's call is replaced by one that notes it;
// entries are found by their kernel.
std::map<void (*)(), simt::KernelEntry>& real_entries() {
  static std::map<void (*)(), simt::KernelEntry> entries;
  return entries;
}
std::set<std::string>& launched() {
  static std::set<std::string> expressions;
  return expressions;
}

std::vector<simt::KernelEntry> noting(std::span<const simt::KernelEntry> kernels) {
  launched().clear();
  std::vector<simt::KernelEntry> entries(kernels.begin(), kernels.end());
  for (simt::KernelEntry& entry : entries) {
    real_entries()[entry.kernel] = entry;
    entry.call = [](void (*kernel)(), const void* arguments) {
      const simt::KernelEntry& real = real_entries().at(kernel);
      launched().insert(real.expression);
      real.call(kernel, arguments);
    };
  }
  return entries;
}

std::set<std::string> instances() {
  std::set<std::string> expressions;
  for (const gpu::KernelId& id : cuda::kernel_instances()) expressions.insert(id.expression);
  return expressions;
}

// What chooses a kernel, in full.
std::vector<Config> kernel_choices(const Problem& problem, const DeviceInfo& info) {
  std::vector<Config> all{{"unfused", {{"products", "joint"}}}};
  const Config built_in = find_variant(info.backend, "pointwise")->built_in(problem, info);
  const Space space(problem, info);
  for (int bits = 0; bits < 64; ++bits) {
    const auto pick = [&](int bit, const char* zero, const char* one) {
      return std::string(bits >> bit & 1 ? one : zero);
    };
    Config config = built_in;
    config.set("forward", pick(0, "tbh", "thb"));
    config.set("data", pick(1, "tbh", "thb"));
    config.set("weights", pick(2, "tbh", "thb"));
    config.set("reserve", pick(3, "gates", "preactivations"));
    config.set("bias_gradient", pick(4, "column_sum", "atomic"));
    config.set("vector", pick(5, "1", "4"));
    if (space.why_not(config).empty()) all.push_back(config);
  }
  return all;
}

class RandomOrderTest : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomOrderTest, testing::Values(1, 2, 3));

// B and H on both sides of a tile's 32.
TEST_P(RandomOrderTest, EveryInstanceComputesWhatTheOracleDoes) {
  Walk walk({.seed = seed() * 4 + GetParam()});
  if (fixtures::emulated()) {
    walk.device =
        simt::open_simt(simt::OpenOptions{.seed = walk.order}, noting(simt::plain_kernels()));
  }
  const Problem problem = problem_of("lstm:L2,T3,B35,I5,H36,f32");
  for (const Config& config : kernel_choices(problem, walk.device->info())) {
    walk.validate(problem, config);
    walk.step_aligned(problem, config);
  }
  if (!fixtures::emulated()) return;
  EXPECT_EQ(launched(), instances());
}

TEST(Simt, RaceChecked) {
  Walk walk({.seed = seed(), .checked = true});
  if (walk.device == nullptr)
    GTEST_SKIP() << "no race checker on a GPU or under the address sanitizer";
#if defined(RNNTUNE_SIMT_RACE_CHECKER)
  walk.device = simt::open_simt(simt::OpenOptions{.seed = seed(), .checked = true},
                                noting(simt::checked_kernels()));
#endif
  const Problem small = problem_of("lstm:L2,T3,B34,I3,H36,f32");
  for (const Config& config : kernel_choices(small, walk.device->info())) {
    walk.validate(small, config);
    if (config.get("vector") == "4") walk.step_aligned(small, config);
  }
  EXPECT_EQ(launched(), instances());
  const Problem longer = problem_of("lstm:L3,T6,B5,I4,H9,f32");
  for (const Config& config : cover(longer, 0)) walk.validate(longer, config);
}

// One layer and time step in which all four pre-activations of sample b are values[b]: I = 1,
// weight_ih = 1, nothing else; c_0 = 0.5.
TEST(Simt, SaturatesAndKeepsNanInItsSample) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values{0,   -0.0f, 20,   -20,   88,    -88,    89,
                                  -89, 104,   1000, -1000, 3e38f, -3e38f, nan};
  const Problem problem =
      problem_of("lstm:L1,T1,B" + std::to_string(values.size()) + ",I1,H36,nobias,f32");
  reference::Inputs in = reference::make_inputs(problem, seed());
  in.x = values;
  in.weights.front().weight_ih.assign(4 * 36, 1.0f);
  in.h_0.assign(in.h_0.size(), 0.0f);
  in.c_0.assign(in.c_0.size(), 0.5f);
  const Walk walk({.seed = seed()});
  for (const Config& config : cover(problem, 0)) {
    SCOPED_TRACE(what(problem, config, seed()));
    const std::unique_ptr<Plan> plan = walk.plan(problem, config);
    auto run = tuner::StepRun::create(*plan, walk.device, problem, in, tuner::Placement::aligned);
    ASSERT_TRUE(run.ok() && (*run)->reset().ok() && (*run)->step(true).ok());
    const auto out = (*run)->outputs();
    ASSERT_TRUE(out.ok()) << out.error().message;
    for (std::size_t i = 0; i < out->y.size(); ++i) {
      const double x = values[i / 36], s = 1 / (1 + std::exp(-x));
      const double c = s * 0.5 + s * std::tanh(x);
      EXPECT_EQ(std::isnan(out->y[i]), std::isnan(x)) << "element " << i;
      EXPECT_EQ(std::isnan(out->dc_0[i]), std::isnan(x)) << "element " << i;
      EXPECT_EQ(std::isfinite(out->dh_0[i]), !std::isnan(x)) << "element " << i;
      if (std::isnan(x)) continue;
      EXPECT_NEAR(out->c_n[i], c, 1e-6) << "pre-activation " << x;
      EXPECT_NEAR(out->y[i], s * std::tanh(c), 1e-6) << "pre-activation " << x;
    }
  }
}

}  // namespace
}  // namespace rnntune
