// SPDX-License-Identifier: Apache-2.0
// rnntune verify: whether the variants compute what they should.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tuner/command.hpp"
#include "tuner/contenders/contender.hpp"
#include "tuner/contenders/evaluate.hpp"
#include "tuner/interrupt.hpp"
#include "tuner/options.hpp"
#include "tuner/progress.hpp"
#include "tuner/search/sample.hpp"

namespace rnntune::tuner {
namespace {

struct VerifyOptions : Options {
  int samples = 8;
  std::string config;
};

// The inputs that each config of a problem is checked with.
struct Cases {
  Setting full;
  std::shared_ptr<const Case> smaller;  // fewer time steps and samples than the plan's; may be null
  std::shared_ptr<const Case> bare;

  Cases(std::shared_ptr<Device> device, const Problem& problem, std::uint64_t seed)
      : full{std::move(device), make_case(problem, seed)}, bare(make_bare_case(problem, seed)) {
    Problem part = problem;
    part.time = std::max<std::int64_t>(1, problem.time - 1);
    part.batch = std::max<std::int64_t>(1, problem.batch - 1);
    if (part != problem) smaller = make_case(part, seed);
  }
};

// What the configs of one variant came to.
struct Line {
  std::string variant;
  bool ours = true;     // else of a library
  std::string why_not;  // the variant cannot compute the problem
  int configs = 0;
  int failures = 0;
  bool repeatable = true;
  Validation worst;
};

Line skipped(const Space::Branch& branch) {
  Line line;
  line.variant = branch.variant->name;
  line.why_not = branch.why_not;
  return line;
}

void note(Line& line, const Validation& found) {
  const bool worse = line.worst.tensor.empty() ||
                     !(found.error * line.worst.bound <= line.worst.error * found.bound);
  if (worse) line.worst = found;
}

// The first of the cases that fails, else ok.
Record check(const Cases& cases, const Config& config, Line& line) {
  Record record;
  const std::unique_ptr<Plan> plan = make_valid_plan(cases.full, config, record);
  line.repeatable = line.repeatable && record.repeatable;
  if (record.validation) note(line, *record.validation);
  if (!plan) return record;
  struct Extra {
    const char* context;
    const std::shared_ptr<const Case>& which;
  };
  for (const Extra& extra : {Extra{"fewer time steps and samples: ", cases.smaller},
                             Extra{"without optional arguments: ", cases.bare}}) {
    if (!extra.which) continue;
    const Verdict verdict = validate(*plan, cases.full.device, *extra.which);
    note(line, verdict.validation);
    line.repeatable = line.repeatable && verdict.repeatable;
    if (verdict.ok()) continue;
    record.outcome = verdict.outcome;
    record.reason = extra.context + verdict.reason;
    break;
  }
  return record;
}

std::vector<Config> sampled(const Space& space, const Space::Branch& branch, const Cases& cases,
                            const VerifyOptions& options) {
  std::vector<Config> configs{
      branch.variant->built_in(cases.full.problem(), cases.full.device->info())};
  Sampler sampler(space, options.seed);
  while (static_cast<int>(configs.size()) <= options.samples) {
    const auto config = sampler.draw({&branch});
    if (!config) break;
    if (*config != configs.front()) configs.push_back(*config);
  }
  return configs;
}

class Verification {
 public:
  explicit Verification(const VerifyOptions& options)
      : options_(options), device_(open_device(options)), progress_(options.quiet) {}

  int run() {
    const std::vector<NamedProblem> problems = load_problems(options_);
    watch_interrupts();
    for (const NamedProblem& named : problems) verify(named);
    if (options_.json) std::printf("%s\n", dump({{"results", results_}}).c_str());
    if (interrupted()) return kInterrupted;
    if (checked_ == 0) return kInconclusive;
    return failures_ == 0 ? kFine : kCheckFailed;
  }

 private:
  void verify(const NamedProblem& named) {
    if (interrupted()) return;
    const Space space(named.problem, device_->info());
    if (usable_branches(space).empty()) {
      for (const auto& branch : space.branches()) report(named, skipped(branch));
      return;
    }
    progress_.show(named.name, 0, "computing the reference");
    const Cases cases(device_, named.problem, options_.seed);
    ask_library(named, cases.full);
    if (!options_.config.empty()) return pinned(named, space, cases);
    for (const Space::Branch& branch : space.branches()) {
      if (interrupted()) return;
      if (!branch.why_not.empty()) {
        report(named, skipped(branch));
        continue;
      }
      const Line line = check_all(named, cases, sampled(space, branch, cases, options_));
      report(named, line, cases.full.which->reference);
    }
  }

  // The GPU's own library as second reference: its results are held against the first one.
  void ask_library(const NamedProblem& named, const Setting& setting) {
    if (device_->info().backend != "cuda" || interrupted()) return;
    progress_.show(named.name, 0, "asking cudnn");
    std::vector<std::string> notes;
    const Result<std::vector<Contender>> found = find_contenders(setting, "cudnn", notes);
    if (!found.ok()) {
      const std::string& why = found.error().message;
      if (found.error().code != ErrorCode::internal) {
        return progress_.say(named.name + ": no second reference: " + why);
      }
      ++failures_;
      progress_.clear();
      std::fprintf(stderr, "FAILED %s: %s differs from the second reference: %s\n",
                   named.name.c_str(), setting.which->reference.c_str(), why.c_str());
      return;
    }
    const Contender& library = found->front();
    Line line;
    line.ours = false;
    line.variant = "cudnn " + library.version + " " + library.algorithm;
    line.configs = 1;
    line.worst = library.validation;
    report(named, line, setting.which->reference);
  }

  void pinned(const NamedProblem& named, const Space& space, const Cases& cases) {
    const Config config = value_or_throw(parse_config(options_.config));
    const std::string why = space.why_not(config);
    if (!why.empty()) {
      throw BadInput("--config: not valid for " + to_string(named.problem) + ": " + why);
    }
    report(named, check_all(named, cases, {config}), cases.full.which->reference);
  }

  Line check_all(const NamedProblem& named, const Cases& cases,
                 const std::vector<Config>& configs) {
    Line line;
    line.variant = configs.front().variant;
    for (const Config& config : configs) {
      if (interrupted()) break;
      progress_.show(named.name + " " + line.variant,
                     line.configs / static_cast<double>(configs.size()), to_string(config));
      const Record record = check(cases, config, line);
      ++line.configs;
      if (record.outcome == Outcome::ok) continue;
      ++line.failures;
      progress_.clear();
      std::fprintf(stderr, "FAILED %s: %s: %s\n  repeat: %s\n", named.name.c_str(),
                   to_string(record.outcome), record.reason.c_str(),
                   repro_command(cases.full, config).c_str());
    }
    return line;
  }

  void report(const NamedProblem& named, const Line& line, const std::string& reference = {}) {
    failures_ += line.failures;
    checked_ += line.ours ? line.configs : 0;
    progress_.clear();
    if (options_.json) {
      Json json = {
          {"name", named.name}, {"problem", to_string(named.problem)}, {"variant", line.variant}};
      if (line.why_not.empty()) {
        json["configs"] = line.configs;
        json["failures"] = line.failures;
        json["repeatable"] = line.repeatable;
        json["validation"] = encode(line.worst);
      } else {
        json["why_not"] = line.why_not;
      }
      results_.push_back(std::move(json));
    } else if (!line.why_not.empty()) {
      std::printf("skip %s %s: %s\n", named.name.c_str(), line.variant.c_str(),
                  line.why_not.c_str());
    } else {
      std::printf("%s %s %s: %d of %d configs, worst %s error %.2e, bound %.2e (%s)%s\n",
                  line.failures == 0 ? "ok  " : "FAIL", named.name.c_str(), line.variant.c_str(),
                  line.configs - line.failures, line.configs, line.worst.tensor.c_str(),
                  line.worst.error, line.worst.bound, reference.c_str(),
                  line.repeatable ? "" : ", not repeatable");
    }
    std::fflush(stdout);
  }

  const VerifyOptions& options_;
  std::shared_ptr<Device> device_;
  Progress progress_;
  Json results_ = Json::array();
  int failures_ = 0;
  int checked_ = 0;
};

}  // namespace

extern const Command kVerify;
const Command kVerify{
    "verify", "Check every variant against the float64 reference", [](CLI::App& app) -> Run {
      auto options = std::make_shared<VerifyOptions>();
      add_device_options(app, *options);
      add_problem_options(app, *options);
      app.add_option("--samples", options->samples,
                     "configs of each variant, drawn at random, beside its built-in one")
          ->capture_default_str()
          ->check(CLI::Range(0, 1000000));
      app.add_option("--config", options->config, "check this config only");
      add_seed_option(app, *options);
      add_output_options(app, *options);
      return [=] { return Verification(*options).run(); };
    }};

}  // namespace rnntune::tuner
