// SPDX-License-Identifier: Apache-2.0
// rnntune tune: finds the fastest config of each problem and keeps it in the database.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "reports/counters.hpp"
#include "reports/format.hpp"
#include "tuner/command.hpp"
#include "tuner/interrupt.hpp"
#include "tuner/search/session.hpp"

namespace rnntune::tuner {
namespace {

Json to_json(const Tuned& tuned) {
  Json json = {{"name", tuned.named.name}, {"problem", to_string(tuned.named.problem)}};
  json["evaluated"] = tuned.evaluated;
  json["resumed"] = tuned.resumed;
  json["failed"] = tuned.failed;
  if (tuned.winner) {
    json["final"] = tuner::to_json(*tuned.winner);
  } else {
    json["error"] = tuned.why;
  }
  return json;
}

void print(const Tuned& tuned) {
  if (!tuned.winner) {
    std::printf("%s: no valid config: %s\n", tuned.named.name.c_str(), tuned.why.c_str());
    return;
  }
  const Final& final = *tuned.winner;
  const double gflops = step_flops(tuned.named.problem) / final.time_us.median * 1e-3;
  const std::string range =
      reports::format_time_interval({final.time_us.median, final.time_us.low, final.time_us.high});
  std::printf("%s: %s [%s], %.1f GFLOP/s, %s\n", tuned.named.name.c_str(),
              reports::format_time(final.time_us.median).c_str(), range.c_str(), gflops,
              to_string(final.config).c_str());
  for (const Against& against : final.against) {
    std::printf("  %.3fx [%.3f, %.3f] against %s%s%s (%s), %s\n", against.ratio.median,
                against.ratio.low, against.ratio.high, against.opponent.c_str(),
                against.version.empty() ? "" : " ", against.version.c_str(),
                against.algorithm.c_str(), reports::format_time(against.time_us.median).c_str());
  }
  for (const StepCounters& counters : final.counters) {
    std::printf("  %s\n", reports::counters_line(to_report(counters)).c_str());
  }
  std::printf("  %lld of %lld configs tried%s, %lld of them earlier, %lld failed, %zu tied\n",
              static_cast<long long>(final.evaluations), static_cast<long long>(final.space),
              final.complete ? "" : " (not complete)", static_cast<long long>(tuned.resumed),
              static_cast<long long>(tuned.failed), final.tied.size());
  std::fflush(stdout);
}

const StrategyRow& chosen_strategy(const std::string& name) {
  if (const StrategyRow* row = find_strategy(name)) return *row;
  std::string known;
  for (const StrategyRow* row : strategies())
    known += std::string(known.empty() ? "" : ", ") + row->name;
  throw BadInput("--strategy: expected one of " + known + ", got '" + name + "'");
}

int tune(const Options& options, const std::string& strategy) {
  const StrategyRow& row = chosen_strategy(strategy);
  const std::vector<NamedProblem> problems = load_problems(options);
  require_writable("--db", options.db);
  require_writable("--journal", options.journal);
  watch_interrupts();
  bool all = true;
  Json json = Json::array();
  Session(options, row).run(problems, [&](const Tuned& tuned) {
    all = all && tuned.winner;
    json.push_back(to_json(tuned));
    if (!options.json) print(tuned);
  });
  if (options.json) std::printf("%s\n", dump({{"problems", json}}).c_str());
  if (interrupted()) return kInterrupted;
  return all ? kFine : kCheckFailed;
}

std::string strategy_help() {
  std::string help;
  for (const StrategyRow* row : strategies()) {
    help += std::string(help.empty() ? "" : "; ") + row->name + ": " + row->help;
  }
  return help;
}

}  // namespace

extern const Command kTune;
const Command kTune{
    "tune", "Find the fastest config of each problem and keep it in the database",
    [](CLI::App& app) -> Run {
      auto options = std::make_shared<Options>();
      auto strategy = std::make_shared<std::string>("local");
      add_device_options(app, *options);
      add_problem_options(app, *options);
      add_db_option(app, *options);
      add_journal_option(app, *options);
      add_against_option(app, *options);
      add_search_options(app, *options);
      add_counters_option(app, *options);
      app.add_option("--strategy", *strategy, strategy_help())->capture_default_str();
      add_seed_option(app, *options);
      add_output_options(app, *options);
      return [=, &app] {
        // A number of evaluations is a budget of its own.
        const bool timeless = options->evaluations > 0 && app.count("--budget") == 0;
        if (timeless) options->budget_s = std::numeric_limits<double>::infinity();
        return tune(*options, *strategy);
      };
    }};

}  // namespace rnntune::tuner
