// SPDX-License-Identifier: Apache-2.0
#include "tuner/commands/report_build.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/database_samples.hpp"

namespace rnntune::tuner {
namespace {

using testing::Contains;
using testing::HasSubstr;

const std::string kProblem = "lstm:L2,T35,B20,I650,H650,f32";

Record record(const std::string& config, double time_us) {
  Record made;
  made.attempt = {kProblem, parse_config(config).value(), "h"};
  made.time_us = TimeUs{time_us, 0.99 * time_us, 1.01 * time_us, 41, 0.02, "converged"};
  made.reserve_bytes = 1000;
  made.validation = Validation{"oracle", 1e-7, 2e-5, "y"};
  return made;
}

std::string line(const Json& json) { return json.dump() + "\n"; }

std::string session(const std::string& key) {
  return line({{"format", "rnntune-journal"},
               {"version", 1},
               {"type", "session"},
               {"time", "2026-11-30T10:00:00Z"},
               {"library", "0.1.0"},
               {"device", encode(samples::device(key))},
               {"environment", {{"compiler", "g++"}}},
               {"problems", {{{"name", "ptb_medium"}, {"problem", kProblem}}}}});
}

JournalView view(const std::string& text) { return parse_journal(text, "j").value(); }

TEST(JournalView, KeepsTheLastOutcomeOfEachConfig) {
  const JournalView journal = view(session("a") + line(to_json(record("cell:threads=1", 900))) +
                                   line(to_json(record("cell:threads=2", 500))) +
                                   line(to_json(record("cell:threads=1", 800))));
  ASSERT_EQ(journal.records.size(), 2u);
  EXPECT_EQ(journal.records[0].time_us->median, 800);
  EXPECT_EQ(journal.names.at(kProblem), "ptb_medium");
  EXPECT_EQ(journal.damaged_lines, 0);
}

TEST(JournalView, ShowsTheDeviceOfTheLastSessionAlone) {
  const std::string text = session("a") + line(to_json(record("cell:threads=1", 900))) +
                           session("b") + line(to_json(record("cell:threads=2", 500)));
  EXPECT_EQ(view(text).device.key, "b");
  ASSERT_EQ(view(text).records.size(), 1u);
  EXPECT_EQ(view(text).records[0].time_us->median, 500);
  EXPECT_EQ(view(text + session("a")).records[0].time_us->median, 900);
}

TEST(JournalView, CountsDamagedLinesAndRefusesAnotherFile) {
  EXPECT_EQ(view(session("a") + "{\"type\":\"outcome\"}\n{\"torn").damaged_lines, 2);
  EXPECT_FALSE(parse_journal("{}", "j").ok());
  EXPECT_EQ(read_journal("/nonexistent/j").error().code, ErrorCode::not_found);
}

Final final_of(const std::string& config, double time_us) {
  Final final;
  final.problem = kProblem;
  final.config = parse_config(config).value();
  final.time_us = {time_us, 0.99 * time_us, 1.01 * time_us, 41, 0.02, "converged"};
  final.against = {
      {"onednn", "2.6.3", "ref", {2 * time_us, 2, 3, 41, 0.1, "converged"}, {2, 1.9, 2.1}}};
  final.tied = {parse_config("cell:threads=1").value()};
  final.evaluations = 2;
  final.space = 10;
  return final;
}

TEST(Final, ReadsBackWhatWasWritten) {
  Final few = final_of("cell:threads=2", 500);
  few.time_us.low = few.time_us.high = few.time_us.noise = std::nan("");
  Final read;
  ASSERT_EQ(from_json(to_json(few), read), "");
  EXPECT_EQ(read.config, few.config);
  EXPECT_EQ(read.time_us.median, 500);
  EXPECT_TRUE(std::isnan(read.time_us.low));
  EXPECT_EQ(read.tied, few.tied);
  EXPECT_EQ(read.against, few.against);
  EXPECT_EQ(read.space, 10);
  EXPECT_THAT(from_json(Json{{"problem", "p"}}, read), HasSubstr(".config"));
}

// At 100 GFLOP/s a step of this problem takes 284 ms at least.
MachineLimits limits() { return {"a", "", {{1, 50, {}}, {2, 100, {}}}}; }

ReportSources journal_sources(double time_us) {
  ReportSources sources;
  sources.journal = view(session("a") + line(to_json(record("cell:threads=2", time_us))) +
                         line(to_json(final_of("cell:threads=2", time_us))));
  sources.device = sources.journal->device;
  sources.limits = limits();
  sources.db_path = "x.json";
  return sources;
}

TEST(ReportBuild, FiguresFollowFromTimeFlopsAndLimits) {
  const double flops = step_flops(parse_problem(kProblem).value());
  const reports::Report report = build_report(journal_sources(flops / 80e3));
  ASSERT_EQ(report.problems.size(), 1u);
  const reports::ProblemReport& problem = report.problems[0];
  EXPECT_EQ(problem.name, "ptb_medium");
  EXPECT_EQ(problem.threads, 2);
  EXPECT_NEAR(*problem.gflops, 80, 1e-9);
  EXPECT_NEAR(*problem.fraction_of_peak, 0.8, 1e-12);
  EXPECT_NEAR(*problem.fraction_of_roofline, 0.8, 1e-12);
  EXPECT_EQ(problem.reserve_bytes, 1000);
  EXPECT_EQ(problem.against.at(0).ratio->median, 2);
  EXPECT_EQ(problem.space, 10);
  EXPECT_EQ(problem.command,
            "rnntune bench --db x.json --problem " + kProblem + " --against onednn");
  EXPECT_TRUE(report.notes.empty());
}

TEST(ReportBuild, ACommandNamesTheDeviceThatIsNoCpu) {
  ReportSources sources = journal_sources(1e6);
  sources.device.backend = "cuda";
  EXPECT_THAT(build_report(sources).problems[0].command, HasSubstr(kProblem + " --device cuda "));
}

TEST(ReportBuild, ATimeBelowTheRooflineIsNoted) {
  EXPECT_THAT(build_report(journal_sources(100)).notes,
              Contains(HasSubstr("ptb_medium is faster than the measured limits allow")));
}

TEST(ReportBuild, NoFigureComesFromATimeThatIsNone) {
  for (const double time_us : {0.0, -1.0, 1e-9, 1e308}) {
    const reports::Report report = build_report(journal_sources(time_us));
    EXPECT_FALSE(report.problems[0].gflops.has_value()) << time_us;
    EXPECT_FALSE(report.problems[0].fraction_of_roofline.has_value()) << time_us;
  }
}

TEST(ReportBuild, WithoutLimitsItSaysHowToMeasureThem) {
  ReportSources sources = journal_sources(1e6);
  sources.limits.reset();
  const reports::Report report = build_report(sources);
  EXPECT_TRUE(report.problems[0].gflops.has_value());
  EXPECT_FALSE(report.problems[0].fraction_of_peak.has_value());
  EXPECT_THAT(report.notes, Contains(HasSubstr("rnntune devices --measure")));
}

TEST(ReportBuild, TheDatabaseRulesOverTheJournalAndBenchOverBoth) {
  ReportSources sources = journal_sources(1e6);
  Database database;
  put(database, sources.device, samples::entry(kProblem));
  sources.database = find_device(database, sources.device);
  EXPECT_EQ(build_report(sources).problems[0].time_us->median, 812.4);

  const std::string label =
      line({{"problem", kProblem}, {"config", encode(parse_config("cell:threads=1").value())}});
  Json benchmarks = Json::array();
  for (const double time : {3.0, 1.0, 2.0, 2.0, 2.0, 2.0}) {
    benchmarks.push_back({{"name", "m/rnntune"},
                          {"run_type", "iteration"},
                          {"real_time", time},
                          {"time_unit", "ms"},
                          {"label", label}});
    benchmarks.push_back({{"name", "m/unfused"},
                          {"run_type", "iteration"},
                          {"real_time", 2 * time},
                          {"time_unit", "ms"},
                          {"label", label},
                          {"ratio", 2.0},
                          {"ratio_low", 1.9},
                          {"ratio_high", 2.1}});
  }
  benchmarks.push_back({{"name", "m/onednn"},
                        {"run_type", "iteration"},
                        {"label", label},
                        {"error_occurred", true},
                        {"error_message", "not found"}});
  const Json json = {{"context", {{"date", "today"}}}, {"benchmarks", benchmarks}};
  sources.results = parse_results(json.dump(), "r").value();
  const reports::ProblemReport problem = build_report(sources).problems[0];
  EXPECT_EQ(problem.time_us->median, 2000);
  EXPECT_EQ(problem.config, "cell:threads=1");
  ASSERT_EQ(problem.against.size(), 1u);
  EXPECT_EQ(problem.against[0].name, "unfused");
  EXPECT_EQ(problem.against[0].time_us->median, 4000);
  EXPECT_EQ(problem.against[0].ratio->low, 1.9);
}

TEST(ReportBuild, ASuiteGivesNamesAndOrder) {
  ReportSources sources = journal_sources(1e6);
  sources.chosen = {{"other", parse_problem("lstm:T1,B1,I1,H1").value(), 1},
                    {"mine", parse_problem(kProblem).value(), 1}};
  const reports::Report report = build_report(sources);
  ASSERT_EQ(report.problems.size(), 2u);
  EXPECT_EQ(report.problems[0].config, "");
  EXPECT_EQ(report.problems[1].name, "mine");
}

TEST(ResultsView, RefusesWhatBenchDidNotWrite) {
  EXPECT_FALSE(parse_results("[]", "r").ok());
  EXPECT_FALSE(parse_results("{", "r").ok());
  EXPECT_THAT(parse_results("{\"context\":{}}", "r").error().message, HasSubstr("r: expected"));
}

}  // namespace
}  // namespace rnntune::tuner
