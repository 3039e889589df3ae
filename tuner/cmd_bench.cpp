// SPDX-License-Identifier: Apache-2.0
// rnntune bench: the step that an application gets, timed interleaved with its opponents.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <memory>

#include "lookup.hpp"
#include "paths.hpp"
#include "reports/counters.hpp"
#include "reports/format.hpp"
#include "tuner/bench_results.hpp"
#include "tuner/command.hpp"
#include "tuner/environment.hpp"
#include "tuner/evaluate.hpp"
#include "tuner/finalists.hpp"
#include "tuner/gpu_clock.hpp"
#include "tuner/interrupt.hpp"
#include "tuner/options.hpp"
#include "tuner/progress.hpp"

namespace rnntune::tuner {
namespace {

struct BenchOptions : Options {
  std::string config;
  std::string out;
  bool asked_against = false;  // named by the user: one that is absent is no success
};

std::string table_line(const BenchRow& row) {
  const Summary& time = row.timing.summary;
  const double gflops = step_flops(row.problem) / time.median * 1e-3;
  const Interval interval = time.interval.value_or(Interval{});
  const std::string range =
      reports::format_time_interval({time.median, interval.low, interval.high});
  char text[256];
  std::snprintf(text, sizeof text, "  %-10s %10s  [%s]  %7.1f GFLOP/s", row.contender.name.c_str(),
                reports::format_time(time.median).c_str(), range.c_str(), gflops);
  std::string line = text;
  if (row.rung.empty()) {
    const Interval ratio = row.ratio.interval.value_or(Interval{});
    std::snprintf(text, sizeof text, "  ratio %.3f [%.3f, %.3f]", row.ratio.median, ratio.low,
                  ratio.high);
    line += text;
  } else {
    line += "  (" + row.rung + ")";
  }
  if (!row.contender.version.empty()) line += "  " + row.contender.version + ",";
  return line + "  " + row.contender.algorithm;
}

// One line per opponent over all problems: how much faster we are, and the worst case.
void print_means(std::FILE* out, const std::vector<BenchRow>& rows) {
  struct Mean {
    double sum_of_logs = 0, worst = std::numeric_limits<double>::infinity();
    int count = 0;
  };
  std::map<std::string, Mean> means;
  for (const BenchRow& row : rows) {
    if (!row.rung.empty() || !(row.ratio.median > 0)) continue;
    Mean& mean = means[row.contender.name];
    mean.sum_of_logs += std::log(row.ratio.median);
    mean.worst = std::min(mean.worst, row.ratio.interval.value_or(Interval{}).low);
    ++mean.count;
  }
  for (const auto& [name, mean] : means) {
    std::fprintf(out, "against %s: geometric mean %.3f of %d, lowest lower bound %.3f\n",
                 name.c_str(), std::exp(mean.sum_of_logs / mean.count), mean.count, mean.worst);
  }
}

class Bench {
 public:
  explicit Bench(const BenchOptions& options)
      : options_(options),
        device_(open_device(options)),
        against_(contender_names(options.against, device_->info())),
        clock_(value_or_throw(open_clock(device_))),
        counting_(open_counting(device_, clock_, options.counters)),
        progress_(options.quiet),
        table_(options.json ? stderr : stdout) {
    if (!options.out.empty()) require_writable("--out", options.out);
  }

  int run() {
    const std::vector<NamedProblem> problems = load_problems(options_);
    watch_interrupts();
    for (const NamedProblem& named : problems) {
      if (!interrupted()) compare(named);
    }
    print_means(table_, rows_);
    write();
    if (interrupted()) return kInterrupted;
    if (failed_) return kCheckFailed;
    return missing_ ? kInconclusive : kFine;
  }

 private:
  // Ends between two of its parts when interrupted: at full sizes each takes many seconds.
  void compare(const NamedProblem& named) {
    progress_.show(named.name, 0, "computing the reference");
    const Explanation choice =
        chosen_config(named.problem, device_->info(), options_.db, options_.config);
    const Setting setting{device_, cases_.get(named.problem, options_.seed), clock_};
    if (interrupted()) return;
    Record record;
    std::optional<Contender> ours = prepare(setting, choice.config, record);
    if (interrupted()) return;
    if (!ours) return fail(named, setting, choice.config, record);
    ours->name = "rnntune";
    std::vector<Contender> contenders;
    contenders.push_back(std::move(*ours));
    for (const std::string& name : against_) {
      add_opponent(named, setting, name, contenders);
      if (interrupted()) return;
    }
    time(named, to_string(choice.rung), std::move(contenders));
  }

  void add_opponent(const NamedProblem& named, const Setting& setting, const std::string& name,
                    std::vector<Contender>& contenders) {
    progress_.show(named.name, 0.1, "preparing " + name);
    std::vector<std::string> notes;
    Result<std::vector<Contender>> found = find_contenders(setting, name, notes);
    if (found.ok()) {
      for (Contender& contender : *found) {
        for (const std::string& note : contender.notes) progress_.say(name + ": " + note);
        contenders.push_back(std::move(contender));
      }
      return;
    }
    progress_.say(named.name + ": no " + name + ": " + found.error().message);
    missing_ = missing_ || options_.asked_against;
  }

  void time(const NamedProblem& named, const char* rung, std::vector<Contender> contenders) {
    progress_.show(named.name, 0.3, "timing");
    std::vector<Step> steps;
    for (const Contender& contender : contenders) steps.push_back(contender.step);
    MeasurePolicy policy;
    policy.budget_us = options_.budget_s * 1e6 / static_cast<double>(contenders.size());
    progress_.say(news_.read(*clock_));
    const Result<Comparison> result = measure_interleaved(steps, policy, *clock_);
    progress_.say(news_.read(*clock_));
    progress_.clear();
    if (!result.ok()) throw std::runtime_error(named.name + ": " + result.error().message);
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      if (fastest_of_name(contenders, result->timings, i)) kept.push_back(i);
    }
    const std::vector<StepCounters> counters = count(contenders, kept);
    progress_.say(counting_.news());
    std::fprintf(table_, "%s: %s\n", named.name.c_str(), to_string(named.problem).c_str());
    for (const std::size_t i : kept) {
      // The row outlives the problem; what the step owns may be large.
      contenders[i].step = nullptr;
      rows_.push_back({named.name, named.problem, contenders[i], result->timings[i],
                       result->ratios[i], i == 0 ? rung : ""});
      std::fprintf(table_, "%s\n", table_line(rows_.back()).c_str());
      for (const StepCounters& one : counters) {
        if (one.contender == contenders[i].name) rows_.back().counters = one;
      }
    }
    for (const StepCounters& one : counters) {
      std::fprintf(table_, "  %s\n", reports::counters_line(to_report(one)).c_str());
    }
    if (result->stop != Stop::converged) {
      std::fprintf(table_, "  stopped by %s before every ratio was known to 1%%\n",
                   to_string(result->stop));
    }
    std::fflush(table_);
  }

  // After all timing of the problem, so that it can disturb none.
  std::vector<StepCounters> count(const std::vector<Contender>& contenders,
                                  const std::vector<std::size_t>& which) {
    std::vector<CountedStep> steps;
    for (const std::size_t i : which) {
      const Contender& contender = contenders[i];
      if (contender.on_device) steps.push_back({contender.name, contender.step});
    }
    return counting_.count(steps);
  }

  void fail(const NamedProblem& named, const Setting& setting, const Config& config,
            const Record& record) {
    failed_ = true;
    progress_.clear();
    std::fprintf(stderr, "FAILED %s: %s: %s\n  repeat: %s\n", named.name.c_str(),
                 to_string(record.outcome), record.reason.c_str(),
                 repro_command(setting, config).c_str());
  }

  void write() {
    if (!options_.json && options_.out.empty()) return;
    const DeviceInfo& info = device_->info();
    const double peak = limits_of(info).peak_gflops(info.threads);
    if (options_.json) write_results(std::cout, rows_, info, environment(*clock_), peak);
    if (options_.out.empty()) return;
    std::ofstream file(options_.out);
    write_results(file, rows_, info, environment(*clock_), peak);
    file.close();
    if (!file) throw BadInput("--out: cannot write '" + options_.out + "'");
  }

  const BenchOptions& options_;
  std::shared_ptr<Device> device_;
  const std::vector<std::string> against_;
  std::shared_ptr<Clock> clock_;
  SourceNews news_;
  StepCounting counting_;
  CaseCache cases_;
  Progress progress_;
  std::FILE* table_;
  std::vector<BenchRow> rows_;
  bool failed_ = false;
  bool missing_ = false;
};

}  // namespace

extern const Command kBench;
const Command kBench{
    "bench", "Time the tuned step against its opponents, interleaved", [](CLI::App& app) -> Run {
      auto options = std::make_shared<BenchOptions>();
      add_device_options(app, *options);
      add_problem_options(app, *options);
      add_db_option(app, *options);
      add_against_option(app, *options);
      add_budget_option(app, *options);
      add_counters_option(app, *options);
      app.add_option("--config", options->config, "time this config, not the database's");
      app.add_option("--out", options->out, "write Google Benchmark JSON to this file");
      add_seed_option(app, *options);
      add_output_options(app, *options);
      return [=, &app] {
        options->asked_against = app.count("--against") > 0;
        return Bench(*options).run();
      };
    }};

}  // namespace rnntune::tuner
