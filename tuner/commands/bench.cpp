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

#include "paths.hpp"
#include "reports/counters.hpp"
#include "reports/format.hpp"
#include "tuner/command.hpp"
#include "tuner/commands/bench_results.hpp"
#include "tuner/contenders/evaluate.hpp"
#include "tuner/contenders/meeting.hpp"
#include "tuner/gpu/gpu_clock.hpp"
#include "tuner/interrupt.hpp"
#include "tuner/measure/environment.hpp"
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
        chosen_config(named.problem, device_->info(), options_, options_.config);
    if (const std::string news = news_of(choice); !news.empty()) {
      progress_.say(named.name + ": " + news);
    }
    const Setting setting{device_, cases_.get(named.problem, options_.seed), clock_};
    if (interrupted()) return;
    progress_.say(news_.read(*clock_));
    Result<Meeting> meeting =
        hold_meeting(setting, {choice.config, against_, options_.budget_s},
                     [&](const std::string& doing) { progress_.show(named.name, 0.3, doing); });
    progress_.say(news_.read(*clock_));
    progress_.clear();
    if (interrupted()) return;
    if (!meeting.ok()) return fail(named, setting, choice.config, meeting.error());
    for (const std::string& line : meeting->news()) progress_.say(named.name + ": " + line);
    missing_ = missing_ || (options_.asked_against && !meeting->absent.empty());
    show(named, to_string(choice.rung), *meeting);
  }

  void show(const NamedProblem& named, const char* rung, Meeting& meeting) {
    const std::vector<StepCounters> counters = count(meeting.contenders);
    progress_.say(counting_.news());
    std::fprintf(table_, "%s: %s\n", named.name.c_str(), to_string(named.problem).c_str());
    for (std::size_t i = 0; i < meeting.contenders.size(); ++i) {
      Contender& contender = meeting.contenders[i];
      // The row outlives the problem; what the step owns may be large.
      contender.step = nullptr;
      contender.recheck = nullptr;
      rows_.push_back({named.name, named.problem, contender, meeting.comparison.timings[i],
                       meeting.comparison.ratios[i], i == 0 ? rung : ""});
      std::fprintf(table_, "%s\n", table_line(rows_.back()).c_str());
      for (const StepCounters& one : counters) {
        if (one.contender == contender.name) rows_.back().counters = one;
      }
    }
    for (const StepCounters& one : counters) {
      std::fprintf(table_, "  %s\n", reports::counters_line(to_report(one)).c_str());
    }
    if (meeting.comparison.stop != Stop::converged) {
      std::fprintf(table_, "  stopped by %s before every ratio was known to 1%%\n",
                   to_string(meeting.comparison.stop));
    }
    std::fflush(table_);
  }

  // After all timing of the problem, so that it can disturb none.
  std::vector<StepCounters> count(const std::vector<Contender>& contenders) {
    std::vector<CountedStep> steps;
    for (const Contender& contender : contenders) {
      if (contender.on_device && contender.step) {
        steps.push_back({contender.name, contender.step});
      }
    }
    return counting_.count(steps);
  }

  void fail(const NamedProblem& named, const Setting& setting, const Config& config,
            const Error& error) {
    failed_ = true;
    std::fprintf(stderr, "FAILED %s: %s\n  repeat: %s\n", named.name.c_str(), error.message.c_str(),
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
