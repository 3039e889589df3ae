// SPDX-License-Identifier: Apache-2.0
#include "tuner/commands/report_build.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "reports/format.hpp"
#include "tuner/measure/roofline.hpp"

namespace rnntune::tuner {
namespace {

reports::Interval interval_of(const TimeUs& time) { return {time.median, time.low, time.high}; }
reports::Interval interval_of(const Ratio& ratio) { return {ratio.median, ratio.low, ratio.high}; }

reports::Opponent opponent_of(const Against& against) {
  return {against.opponent, against.version, against.algorithm, interval_of(against.time_us),
          interval_of(against.ratio)};
}

void set_time(reports::ProblemReport& report, const TimeUs& time) {
  report.time_us = interval_of(time);
  report.samples = time.samples;
  report.stop = time.stop;
}

// Counters are of the config they were counted with.
void set_config(reports::ProblemReport& report, const Config& config) {
  if (report.config != to_string(config)) report.counters.clear();
  report.config = to_string(config);
  report.variant = config.variant;
  report.threads = static_cast<int>(config.get_int("threads", 0));
}

void set_tied(reports::ProblemReport& report, const std::vector<Config>& tied) {
  report.tied.clear();
  for (const Config& config : tied) report.tied.push_back(to_string(config));
}

void set_against(reports::ProblemReport& report, const std::vector<Against>& against) {
  report.against.clear();
  for (const Against& one : against) report.against.push_back(opponent_of(one));
}

void set_validation(reports::ProblemReport& report, const Validation& validation) {
  report.validation = {validation.reference, validation.error, validation.bound, validation.tensor};
}

reports::Attempt attempt_of(const Record& record) {
  reports::Attempt attempt;
  attempt.config = to_string(record.attempt.config);
  attempt.variant = record.attempt.config.variant;
  attempt.params = record.attempt.config.params;
  attempt.outcome = to_string(record.outcome);
  attempt.reason = record.reason;
  attempt.repeatable = record.repeatable;
  if (record.time_us) attempt.time_us = interval_of(*record.time_us);
  return attempt;
}

// Everything the journal knows of a problem: what was tried, and the winner of its last race.
void add_journal(reports::ProblemReport& report, const JournalView& journal) {
  for (const Final& final : journal.finals) {
    if (final.problem != report.problem) continue;
    set_config(report, final.config);
    set_time(report, final.time_us);
    set_tied(report, final.tied);
    set_against(report, final.against);
    for (const StepCounters& one : final.counters) report.counters.push_back(to_report(one));
    report.evaluations = final.evaluations;
    report.space = final.space;
    report.complete = final.complete;
  }
  for (const Record& record : journal.records) {
    if (record.attempt.problem != report.problem) continue;
    report.attempts.push_back(attempt_of(record));
    if (report.attempts.back().config != report.config || record.outcome != Outcome::ok) continue;
    report.workspace_bytes = record.workspace_bytes;
    report.reserve_bytes = record.reserve_bytes;
    report.packed_bytes = record.packed_bytes;
    if (record.validation) set_validation(report, *record.validation);
  }
  report.evaluations =
      std::max(report.evaluations, static_cast<std::int64_t>(report.attempts.size()));
}

void add_entry(reports::ProblemReport& report, const DeviceRecord& device) {
  for (const Entry& entry : device.entries) {
    if (to_string(entry.problem) != report.problem || entry.objective != "step") continue;
    set_config(report, entry.config);
    set_time(report, entry.time_us);
    set_tied(report, entry.tied);
    set_against(report, entry.against);
    set_validation(report, entry.validation);
    report.workspace_bytes = entry.workspace_bytes;
    report.reserve_bytes = entry.reserve_bytes;
    report.packed_bytes = entry.packed_bytes;
    report.evaluations = std::max(report.evaluations, entry.evaluations);
    report.complete = entry.complete;
  }
}

// A bench run times our config and its contenders anew; its rows replace the tuner's.
void add_results(reports::ProblemReport& report, const ResultsView& results) {
  std::vector<reports::Opponent> against;
  std::vector<reports::GpuCounters> counters;
  for (const ResultRow& row : results.rows) {
    if (row.problem != report.problem || !row.error.empty()) continue;
    if (row.counters) counters.push_back(to_report(*row.counters));
    if (row.contender == "rnntune") {
      set_time(report, row.time_us);
      const Result<Config> config = parse_config(row.config);
      if (config.ok()) set_config(report, *config);
    } else {
      reports::Opponent& one = against.emplace_back();
      one = {row.contender, row.version, row.algorithm, interval_of(row.time_us), std::nullopt};
      if (row.ratio) one.ratio = interval_of(*row.ratio);
    }
  }
  if (!against.empty()) report.against = against;
  if (!counters.empty()) report.counters = counters;
}

void add_figures(reports::ProblemReport& report, const std::optional<MachineLimits>& limits) {
  const Result<Problem> problem = parse_problem(report.problem);
  if (!problem.ok() || !report.time_us || !reports::is_valid(*report.time_us)) return;
  const double time_us = report.time_us->median;
  report.gflops = step_flops(*problem) / time_us * 1e-3;
  if (!limits || limits->limits.empty()) return;
  int most = 1;
  for (const ThreadLimits& row : limits->limits) most = std::max(most, row.threads);
  if (report.threads == 0) report.threads = most;
  const ThreadLimits* at = limits_at(limits->limits, report.threads);
  if (!at || !(at->fma_peak_f32_gflops > 0)) return;
  const StepBound bound = step_bound(*problem, *at);
  report.fraction_of_peak = *report.gflops / at->fma_peak_f32_gflops;
  report.fraction_of_roofline = bound.time_us / time_us;
  report.roofline = {bound.time_us, bound.intensity(),
                     bound.bandwidth_limited ? "bandwidth" : "compute"};
}

std::string repeat_command(const reports::ProblemReport& report, const ReportSources& sources) {
  std::string command = "rnntune bench --db " + sources.db_path + " --problem " + report.problem;
  const std::string& backend = sources.device.backend;
  if (!backend.empty() && backend != "cpu") command += " --device " + backend;
  for (const reports::Opponent& opponent : report.against) {
    command += (&opponent == &report.against.front() ? " --against " : ",") + opponent.name;
  }
  return command;
}

struct Row {
  std::string name;
  std::string problem;
};

// Each problem once, under the best name there is for it.
class Rows {
 public:
  explicit Rows(const ReportSources& sources) : sources_(sources) {}

  std::vector<Row> all() {
    for (const NamedProblem& one : sources_.chosen) add(to_string(one.problem), one.name);
    if (!sources_.chosen.empty()) return rows_;
    if (sources_.journal) {
      for (const Record& record : sources_.journal->records) add(record.attempt.problem);
      for (const Final& final : sources_.journal->finals) add(final.problem);
    }
    if (sources_.database) {
      for (const Entry& entry : sources_.database->entries) add(to_string(entry.problem));
    }
    if (sources_.results) {
      for (const ResultRow& row : sources_.results->rows) {
        if (!row.problem.empty()) add(row.problem, row.name);
      }
    }
    return rows_;
  }

 private:
  void add(const std::string& problem, std::string name = "") {
    if (!seen_.insert(problem).second) return;
    if (name.empty() && sources_.journal) {
      const auto known = sources_.journal->names.find(problem);
      if (known != sources_.journal->names.end()) name = known->second;
    }
    if (name.empty() && sources_.results) {
      for (const ResultRow& row : sources_.results->rows) {
        if (row.problem == problem) name = row.name;
      }
    }
    rows_.push_back({name.empty() ? problem : name, problem});
  }

  const ReportSources& sources_;
  std::vector<Row> rows_;
  std::set<std::string> seen_;
};

void add_notes(reports::Report& report, const ReportSources& sources) {
  if (!sources.limits) {
    report.notes.push_back(
        "The limits of this machine were not measured, so nothing is set against its peak: "
        "rnntune devices --measure");
  }
  if (sources.journal && sources.journal->damaged_lines > 0) {
    report.notes.push_back(std::to_string(sources.journal->damaged_lines) +
                           " lines of the journal could not be read and are left out.");
  }
  if (sources.database && !sources.database->skipped.empty()) {
    const Skipped& first = sources.database->skipped.front();
    report.notes.push_back(std::to_string(sources.database->skipped.size()) +
                           " entries of the database were passed over, the first at " +
                           first.place + ": " + first.reason);
  }
  for (const reports::ProblemReport& problem : report.problems) {
    if (problem.fraction_of_roofline.value_or(0) > 1) {
      report.notes.push_back(problem.name +
                             " is faster than the measured limits allow, so one of the two is "
                             "wrong: rnntune devices --measure, then tune again.");
    }
    if (problem.time_us && problem.stop == "budget" && reports::is_valid(*problem.time_us)) {
      const double width = (problem.time_us->high - problem.time_us->low) / problem.time_us->median;
      report.notes.push_back(
          problem.name + " was timed to the end of its budget, with an interval " +
          (std::isfinite(width) ? reports::format_percent(width) + " wide." : "not yet there."));
    }
    const auto best = std::find_if(
        problem.attempts.begin(), problem.attempts.end(),
        [&](const reports::Attempt& attempt) { return attempt.config == problem.config; });
    if (best != problem.attempts.end() && !best->repeatable) {
      report.notes.push_back(problem.name + ": the best config is not bitwise repeatable.");
    }
  }
}

// "2026-11-30T10:00:00Z" for people; any other text as it is.
std::string readable(const std::string& time) {
  if (time.size() != 20 || time[10] != 'T' || time.back() != 'Z') return time;
  return time.substr(0, 10) + " " + time.substr(11, 5) + " UTC";
}

void add_environment(reports::Report& report, const ReportSources& sources) {
  Environment environment;
  if (sources.database && !sources.database->entries.empty()) {
    environment = sources.database->entries.front().environment;
    report.time = sources.database->entries.front().time;
    for (const Entry& entry : sources.database->entries) {
      report.time = std::max(report.time, entry.time);
    }
  }
  if (sources.journal) {
    environment = sources.journal->environment;
    if (report.time.empty()) report.time = sources.journal->time;
    report.version = sources.journal->version;
  }
  if (sources.results) {
    environment = sources.results->environment;
    report.time = sources.results->date;
    report.version = sources.results->version;
  }
  report.time = readable(report.time);
  for (const auto& [key, value] : environment) {
    if (key == "library" && report.version.empty()) report.version = value;
    if (key != "library") report.environment.push_back({key, value});
  }
  report.environment.push_back({"architecture", sources.device.architecture});
  for (const auto& [key, value] : sources.device.properties) {
    report.environment.push_back({key, value});
  }
  std::map<std::string, std::string> versions;
  std::string references;
  for (const reports::ProblemReport& problem : report.problems) {
    const std::string reference = problem.validation ? problem.validation->reference : "";
    if (references.find(reference) == std::string::npos) {
      references += (references.empty() ? "" : ", ") + reference;
    }
    for (const reports::Opponent& o : problem.against) {
      if (!o.version.empty()) versions[o.name] = o.version;
    }
  }
  report.environment.insert(report.environment.end(), versions.begin(), versions.end());
  report.environment.push_back({"validated against", references});
}

}  // namespace

reports::Report build_report(const ReportSources& sources) {
  reports::Report report;
  report.title = "rnntune report";
  report.device = sources.device.name;
  if (sources.limits) {
    for (const ThreadLimits& row : sources.limits->limits) {
      reports::MachineLimits& limits = report.limits.emplace_back();
      limits.threads = row.threads;
      limits.peak_gflops = row.fma_peak_f32_gflops;
      for (const Bandwidth& point : row.read_bandwidth) {
        limits.read_bandwidth.push_back({point.working_set_bytes, point.gbytes_per_s});
      }
    }
  }
  for (const Row& row : Rows(sources).all()) {
    reports::ProblemReport& problem = report.problems.emplace_back();
    problem.name = row.name;
    problem.problem = row.problem;
    if (sources.journal) add_journal(problem, *sources.journal);
    if (sources.database) add_entry(problem, *sources.database);
    if (sources.results) add_results(problem, *sources.results);
    add_figures(problem, sources.limits);
    if (!problem.config.empty()) problem.command = repeat_command(problem, sources);
  }
  add_environment(report, sources);
  add_notes(report, sources);
  return report;
}

}  // namespace rnntune::tuner
