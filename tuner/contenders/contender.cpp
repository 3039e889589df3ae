// SPDX-License-Identifier: Apache-2.0
#include "tuner/contenders/contender.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "paths.hpp"
#include "reference/opponent.hpp"
#include "space.hpp"
#include "tuner/command.hpp"
#include "tuner/contenders/step_run.hpp"
#include "tuner/interrupt.hpp"

namespace rnntune::tuner {
namespace {

using reference::Opponent;
using reference::OpponentRun;

// Enough to tell the fastest of a few; the exact times come from the interleaved run.
const MeasurePolicy kScreening{
    .target = 0.03, .min_samples = 6, .budget_us = 0.3e6, .race_after = 3};
const MeasurePolicy kDuel{.target = 0.03, .min_samples = 2, .budget_us = 0.3e6};
constexpr double kNoMatch = 2;  // times the best: more than a busy moment adds
constexpr std::size_t kScreenedConfigs = 16;

// A plan with its run: what a step of ours owns.
struct Prepared {
  std::unique_ptr<Plan> plan;
  std::shared_ptr<const Case> which;
  std::unique_ptr<StepRun> run;

  Status recheck() const {
    if (Status status = run->reset(); !status.ok()) return status;
    if (Status status = run->step(true); !status.ok()) return status;
    const auto out = run->outputs();
    if (!out.ok()) return out.error();
    const auto checks = reference::check_outputs(which->problem, *out, which->expected);
    const reference::TensorCheck& worst = checks.front();
    if (worst.ok) return {};
    return Error{ErrorCode::internal, worst.tensor + ": " + worst.reason};
  }
};

void failed(Record& record, Outcome outcome, std::string reason) {
  record.outcome = outcome;
  record.reason = std::move(reason);
}

Outcome outcome_of(const Error& error, Outcome otherwise) {
  const bool lacking =
      error.code == ErrorCode::out_of_memory || error.code == ErrorCode::resource_limit;
  return lacking ? Outcome::resource_limit : otherwise;
}

// Milliseconds matter in the ledger, so every stage is charged to its field.
class Charge {
 public:
  explicit Charge(double& account) : account_(account), start_(steady_clock().now_us()) {}
  ~Charge() { account_ += steady_clock().now_us() - start_; }

 private:
  double& account_;
  double start_;
};

Result<std::unique_ptr<Plan>> make_plan(const Setting& setting, const Config& config,
                                        Record& record) {
  Charge charge(record.prepare_us);
  const std::string backend = setting.device->info().backend;
  auto plan =
      find_variant(backend, config.variant)->make(setting.problem(), setting.device, config);
  if (!plan.ok()) return plan.error();
  const PlanSizes sizes = (*plan)->sizes();
  record.packed_bytes = static_cast<std::int64_t>(sizes.packed);
  record.workspace_bytes = static_cast<std::int64_t>(sizes.workspace);
  record.reserve_bytes = static_cast<std::int64_t>(sizes.reserve);
  return plan;
}

// Keeps the fastest of each number of threads. Each contender is timed alone, as long as that shows
// it far slower than the best so far; else both are timed in turns, since a machine that was busy
// for a second must not choose. No more than two of a number are alive: their memory may be large.
class Screening {
 public:
  explicit Screening(Clock& clock) : clock_(clock) {}

  void consider(Contender contender) {
    const auto best = best_.find(contender.threads);
    const bool first = best == best_.end();
    MeasurePolicy policy = kScreening;
    if (!first) policy.best_us = best->second.time_us;
    const Result<Timing> timing = measure(contender.step, policy, clock_);
    if (!timing.ok()) return refuse(timing.error());
    const double time_us = timing->summary.median;
    if (!first) {
      if (time_us > kNoMatch * best->second.time_us) return;
      const Step steps[] = {best->second.contender.step, contender.step};
      const Result<Comparison> duel = measure_interleaved(steps, kDuel, clock_);
      if (!duel.ok()) return refuse(duel.error());
      if (duel->ratios[1].median >= 1) return;
    }
    const int threads = contender.threads;
    best_.insert_or_assign(threads, Best{time_us, std::move(contender)});
  }
  void refuse(Error error) { error_ = std::move(error); }

  // Fastest first, without those that are no match for it. An interrupted screening has not seen
  // them all, so it names none.
  Result<std::vector<Contender>> result() {
    if (interrupted()) return unsupported("interrupted");
    std::vector<Best> order;
    for (auto& [threads, best] : best_) order.push_back(std::move(best));
    if (order.empty()) return error_;
    std::stable_sort(order.begin(), order.end(),
                     [](const Best& a, const Best& b) { return a.time_us < b.time_us; });
    std::vector<Contender> contenders;
    for (Best& best : order) {
      if (best.time_us > kNoMatch * order.front().time_us) break;
      contenders.push_back(std::move(best.contender));
    }
    return contenders;
  }

 private:
  struct Best {
    double time_us;
    Contender contender;
  };

  Clock& clock_;
  std::map<int, Best> best_;  // by number of threads
  Error error_ = unsupported("nothing to choose from");
};

// All configs of a variant with few of them, else the built-in one at every number of threads, and
// in every way to share among them.
std::vector<Config> screened_configs(const Setting& setting, const Variant& variant) {
  const DeviceInfo& device = setting.device->info();
  std::vector<Config> all, some;
  const Config built_in = variant.built_in(setting.problem(), device);
  const auto differs_in_team_only = [&](const Config& config) {
    Config other = config;
    for (const char* name : {"threads", "split"}) {
      if (!config.get(name).empty()) other.set(name, std::string(built_in.get(name)));
    }
    return other == built_in;
  };
  Space(setting.problem(), device).each([&](const Config& config) {
    if (config.variant != variant.name) return true;
    all.push_back(config);
    if (differs_in_team_only(config)) some.push_back(config);
    return true;
  });
  return all.size() <= kScreenedConfigs || some.empty() ? all : some;
}

Result<std::vector<Contender>> best_of_variant(const Setting& setting, const Variant& variant,
                                               std::vector<std::string>& notes) {
  const std::string why = variant.why_not(setting.problem(), setting.device->info());
  if (!why.empty()) return unsupported(std::string(variant.name) + ": " + why);
  Screening screening(setting.clock());
  for (const Config& config : screened_configs(setting, variant)) {
    if (interrupted()) break;
    Record record;
    if (auto contender = prepare(setting, config, record)) {
      contender->name = variant.name;
      screening.consider(std::move(*contender));
    } else {
      notes.push_back(to_string(config) + ": " + record.reason);
      screening.refuse(unsupported(notes.back()));
    }
  }
  return screening.result();
}

Result<Contender> prepare_opponent(const Setting& setting, const std::shared_ptr<Opponent>& library,
                                   int threads) {
  const std::string who = library->name() + " " + library->version();
  if (std::string why = library->why_not(setting.problem()); !why.empty()) {
    return unsupported(who + ": " + why);
  }
  const auto named = [&](const Error& error) {
    return Error{error.code, who + ": " + error.message};
  };
  auto prepared =
      library->prepare(setting.problem(), setting.which->inputs, setting.which->expected, threads);
  if (!prepared.ok()) return named(prepared.error());
  const std::shared_ptr<OpponentRun> run = std::move(prepared.value());
  if (Status status = run->step(); !status.ok()) return named(status.error());
  const auto out = run->outputs();
  if (!out.ok()) return named(out.error());
  const auto checks = reference::check_outputs(setting.problem(), *out, setting.which->expected);
  const reference::TensorCheck& worst = checks.front();
  if (!worst.ok) {
    return Error{ErrorCode::internal, who + " is broken: " + worst.tensor + ": " + worst.reason};
  }
  Contender contender;
  contender.name = library->name();
  contender.version = library->version();
  contender.algorithm = run->algorithm();
  if (setting.device->info().backend == "cpu") {
    contender.threads = threads;
    contender.algorithm += ", threads " + std::to_string(threads);
  }
  contender.notes = run->notes();
  contender.on_device = library->on_device() || setting.device->info().backend == "cpu";
  contender.validation = {setting.which->reference, worst.error, worst.bound, worst.tensor};
  // The library itself must outlive what it made.
  contender.step = [library, run, which = setting.which] { return run->step(); };
  return contender;
}

Result<std::vector<Contender>> best_opponent(const Setting& setting, const std::string& name,
                                             std::vector<std::string>& notes) {
  std::vector<std::string> absent;
  auto libraries = reference::find_opponents(name, {setting.device, data_folder()}, absent);
  if (!libraries.ok()) return libraries.error();
  std::string reasons;
  for (const std::string& reason : absent) reasons += (reasons.empty() ? ": " : "; ") + reason;
  notes.insert(notes.end(), absent.begin(), absent.end());
  std::vector<int> thread_counts;  // those that our own space has
  const int most = setting.device->info().threads;
  for (int threads = 1; threads < most; threads *= 2) thread_counts.push_back(threads);
  thread_counts.push_back(most);
  Screening screening(setting.clock());
  screening.refuse(unsupported(name + " is not at hand" + reasons));
  for (const auto& library : *libraries) {
    for (const int threads : thread_counts) {
      if (interrupted()) break;
      Result<Contender> contender = prepare_opponent(setting, library, threads);
      if (contender.ok()) {
        screening.consider(std::move(contender.value()));
      } else {
        notes.push_back(contender.error().message);
        screening.refuse(contender.error());
      }
    }
  }
  return screening.result();
}

}  // namespace

std::unique_ptr<Plan> make_valid_plan(const Setting& setting, const Config& config,
                                      Record& record) {
  const std::string why = Space(setting.problem(), setting.device->info()).why_not(config);
  if (!why.empty()) return failed(record, Outcome::rejected, why), nullptr;
  auto plan = make_plan(setting, config, record);
  if (!plan.ok()) {
    failed(record, outcome_of(plan.error(), Outcome::build_failed), plan.error().message);
    return nullptr;
  }
  Charge charge(record.validate_us);
  const Verdict verdict = validate(**plan, setting.device, *setting.which);
  const auto claims = find_variant(setting.device->info().backend, config.variant)->repeatable;
  record.repeatable = verdict.repeatable && (claims == nullptr || claims(config));
  if (!verdict.validation.tensor.empty()) record.validation = verdict.validation;
  if (!verdict.ok()) return failed(record, verdict.outcome, verdict.reason), nullptr;
  return std::move(plan.value());
}

std::optional<Contender> prepare(const Setting& setting, const Config& config, Record& record) {
  auto owned = std::make_shared<Prepared>();
  owned->which = setting.which;
  owned->plan = make_valid_plan(setting, config, record);
  if (!owned->plan) return std::nullopt;
  Charge charge(record.prepare_us);
  auto run = StepRun::create(*owned->plan, setting.device, setting.problem(), setting.which->inputs,
                             Placement::aligned);
  if (!run.ok()) {
    failed(record, outcome_of(run.error(), Outcome::launch_failed), run.error().message);
    return std::nullopt;
  }
  owned->run = std::move(run.value());
  Contender contender;
  contender.name = config.variant;
  contender.algorithm = to_string(config);
  contender.config = config;
  if (setting.device->info().backend == "cpu") {
    contender.threads = static_cast<int>(config.get_int("threads"));
  }
  contender.validation = *record.validation;
  contender.sizes = owned->plan->sizes();
  contender.recheck = [owned] { return owned->recheck(); };
  if (setting.clock().completes_steps()) {
    contender.step = [owned] { return owned->run->queue(true); };
  } else {
    contender.step = [owned] { return owned->run->step(true); };
  }
  return contender;
}

Result<std::vector<Contender>> find_contenders(const Setting& setting, const std::string& name,
                                               std::vector<std::string>& notes) {
  const Variant* variant = find_variant(setting.device->info().backend, name);
  return variant != nullptr ? best_of_variant(setting, *variant, notes)
                            : best_opponent(setting, name, notes);
}

std::vector<std::string> contender_names(const std::vector<std::string>& asked,
                                         const DeviceInfo& device) {
  if (asked.empty()) return {"unfused", device.backend == "cuda" ? "cudnn" : "onednn"};
  for (const std::string& name : asked) {
    if (find_variant(device.backend, name) != nullptr) continue;
    const Status known = reference::check_opponent_name(name);
    if (!known.ok()) throw BadInput("--against: " + known.error().message);
  }
  return asked;
}

}  // namespace rnntune::tuner
