// SPDX-License-Identifier: Apache-2.0
#include "tuner/contenders/validate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>

#include "tuner/contenders/step_run.hpp"

namespace rnntune::tuner {
namespace {

using reference::Outputs;
using reference::TensorCheck;

float rms(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value * value;
  return static_cast<float>(std::sqrt(sum / static_cast<double>(values.size())));
}

void add_accumulation(Case& which) {
  which.accumulated.gradients = which.expected.gradients;
  auto start_from = [&](const std::string& name, auto& tensor, auto&) {
    const float start = rms(tensor);
    which.gradient_starts[name] = start;
    for (double& value : tensor) value += start;
  };
  reference::each_output(which.accumulated, which.accumulated, start_from);
}

bool same_bits(const Outputs<float>& a, const Outputs<float>& b) {
  bool same = true;
  reference::each_output(a, b, [&](const std::string&, auto& left, auto& right) {
    same = same && std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
  });
  return same;
}

std::string describe(const TensorCheck& check) {
  char text[200];
  std::snprintf(text, sizeof text,
                "%s: %s: element %lld is %.9g, expected %.9g (error %.3g, bound %.3g)",
                check.tensor.c_str(), check.reason.c_str(), static_cast<long long>(check.worst),
                check.value, check.expected, check.error, check.bound);
  return text;
}

// The checks in their order; the first that fails decides.
class Examination {
 public:
  Examination(StepRun& run, const Case& which) : run_(run), which_(which) {}

  Verdict run() {
    verdict_.validation.reference = which_.reference;
    const auto first = training_step("", {}, which_.expected);
    if (!first) return verdict_;
    const auto second = training_step("second run: ", {}, which_.expected);
    if (!second) return verdict_;
    verdict_.repeatable = same_bits(*first, *second);
    const auto third = training_step("accumulating: ", which_.gradient_starts, which_.accumulated);
    if (third) inference();
    return verdict_;
  }

 private:
  std::optional<Outputs<float>> training_step(const std::string& context,
                                              const std::map<std::string, float>& starts,
                                              const Outputs<double>& expected) {
    if (!called(context, "reset", run_.reset(starts))) return {};
    if (!called(context, "pack", run_.pack())) return {};
    if (!called(context, "forward", run_.forward(Mode::training))) return {};
    const auto forward = outputs();
    if (!forward) return {};
    if (!called(context, "backward_data", run_.backward_data())) return {};
    if (!called(context, "backward_weights", run_.backward_weights())) return {};
    auto all = outputs();
    if (!all || !undamaged(context)) return {};
    const bool whole = !expected.y.empty();
    const Outputs<float> gradients{{}, {}, {}, {}, {}, {}, all->gradients};
    if (!compared(context, whole ? *all : gradients, expected)) return {};
    if (std::memcmp(forward->y.data(), all->y.data(), all->y.size() * sizeof(float)) != 0) {
      return fail(Outcome::wrong_result, context + "backward modified y"), std::nullopt;
    }
    return all;
  }

  // Inference shares no reserve, so it is another path: y and the last states.
  void inference() {
    const std::string context = "inference: ";
    if (!called(context, "reset", run_.reset()) || !called(context, "pack", run_.pack()) ||
        !called(context, "forward", run_.forward(Mode::inference))) {
      return;
    }
    const auto out = outputs();
    if (!out || !undamaged(context)) return;
    const Outputs<float> forward{out->y, out->h_n, out->c_n, {}, {}, {}, {}};
    const Outputs<double>& all = which_.expected;
    compared(context, forward, {all.y, all.h_n, all.c_n, {}, {}, {}, {}});
  }

  bool called(const std::string& context, const char* name, const Status& status) {
    if (status.ok()) return true;
    return fail(Outcome::launch_failed, context + name + ": " + status.error().message);
  }

  std::optional<Outputs<float>> outputs() {
    Result<Outputs<float>> out = run_.outputs();
    if (out.ok()) return std::move(out.value());
    fail(Outcome::launch_failed, out.error().message);
    return std::nullopt;
  }

  bool undamaged(const std::string& context) {
    const Result<std::string> damage = run_.damage();
    if (!damage.ok()) return fail(Outcome::launch_failed, damage.error().message);
    return damage->empty() || fail(Outcome::wrong_result, context + *damage);
  }

  bool compared(const std::string& context, const Outputs<float>& out,
                const Outputs<double>& expected) {
    const auto checks = reference::check_outputs(which_.problem, out, expected);
    if (checks.empty()) return fail(Outcome::wrong_result, context + "no output to compare");
    const TensorCheck& worst = checks.front();
    note_worst(worst);
    if (worst.ok) return true;
    const bool zero = worst.reason == "mostly zero";
    return fail(zero ? Outcome::untrusted : Outcome::wrong_result, context + describe(worst));
  }

  void note_worst(const TensorCheck& check) {
    Validation& worst = verdict_.validation;
    const bool first = worst.tensor.empty();
    if (!first && check.ok && check.error * worst.bound <= worst.error * check.bound) return;
    worst.tensor = check.tensor;
    worst.error = check.error;
    worst.bound = check.bound;
  }

  bool fail(Outcome outcome, std::string reason) {
    verdict_.outcome = outcome;
    verdict_.reason = std::move(reason);
    return false;
  }

  StepRun& run_;
  const Case& which_;
  Verdict verdict_;
};

std::shared_ptr<Case> judged(const Problem& problem, std::uint64_t seed, reference::Inputs inputs) {
  auto made = std::make_shared<Case>();
  made->problem = problem;
  made->seed = seed;
  made->inputs = std::move(inputs);
  made->expected = reference::reference_step(problem, made->inputs);
  made->reference = reference::reference_name(problem);
  add_accumulation(*made);
  return made;
}

}  // namespace

std::shared_ptr<const Case> make_case(const Problem& problem, std::uint64_t seed) {
  return judged(problem, seed, reference::make_inputs(problem, seed));
}

std::shared_ptr<const Case> make_bare_case(const Problem& problem, std::uint64_t seed) {
  reference::Inputs inputs = reference::make_inputs(problem, seed);
  for (auto* states : {&inputs.h_0, &inputs.c_0, &inputs.dh_n, &inputs.dc_n}) {
    std::fill(states->begin(), states->end(), 0.0f);
  }
  auto bare = judged(problem, seed, std::move(inputs));
  for (auto* states :
       {&bare->inputs.h_0, &bare->inputs.c_0, &bare->inputs.dh_n, &bare->inputs.dc_n}) {
    states->clear();
  }
  Outputs<double>& expected = bare->expected;
  for (auto* unwanted :
       {&expected.h_n, &expected.c_n, &expected.dx, &expected.dh_0, &expected.dc_0}) {
    unwanted->clear();
  }
  return bare;
}

std::shared_ptr<const Case> CaseCache::get(const Problem& problem, std::uint64_t seed) {
  if (!last_ || last_->problem != problem || last_->seed != seed) {
    last_.reset();  // before the next one: both may be large
    last_ = make_case(problem, seed);
  }
  return last_;
}

Verdict validate(Plan& plan, std::shared_ptr<Device> device, const Case& which) {
  auto run =
      StepRun::create(plan, std::move(device), which.problem, which.inputs, Placement::element);
  if (run.ok()) return Examination(**run, which).run();
  const bool memory = run.error().code == ErrorCode::out_of_memory;
  Verdict verdict;
  verdict.outcome = memory ? Outcome::resource_limit : Outcome::launch_failed;
  verdict.reason = run.error().message;
  return verdict;
}

}  // namespace rnntune::tuner
