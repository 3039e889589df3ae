// SPDX-License-Identifier: Apache-2.0
// GPU counters from the count of a step to journal, results and report: what is counted is shown,
// and a refusal is told once and costs nothing else.
#include "tuner/gpu/step_counters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reports/counters.hpp"
#include "reports/html.hpp"
#include "reports/markdown.hpp"
#include "tests/database_samples.hpp"
#include "tuner/commands/bench_results.hpp"
#include "tuner/commands/report_build.hpp"

namespace rnntune::tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

const std::string kProblem = "lstm:L2,T35,B20,I650,H650,f32";

StepCounters sample(const std::string& contender = "rnntune") {
  return {contender,
          "GH100",
          5,
          {{"dram_read_bytes", 3 << 20},
           {"dram_write_bytes", 1 << 20},
           {"dram_throughput_percent", 40},
           {"l2_bytes", 1 << 30},
           {"occupancy_percent", 25},
           {"tensor_pipe_percent", 0},
           {"warps_active_count", 1000},
           {"selected_count", 100},
           {"stall_barrier_count", 120},
           {"stall_long_scoreboard_count", 450},
           {"stall_gmma_count", 2},
           {"stall_wait_count", 9}}};
}

// A clock that notes when its profiler is lent.
class LendingClock : public Clock {
 public:
  explicit LendingClock(std::vector<std::string>& calls) : calls_(calls) {}
  double now_us() override { return 0; }
  double cpu_us() override { return 0; }
  void set_aside(const std::function<void()>& body) override {
    calls_.push_back("lent");
    body();
    calls_.push_back("back");
  }

 private:
  std::vector<std::string>& calls_;
};

class StepCountingTest : public testing::Test {
 protected:
  StepCounting counting(StepCounting::Count count) {
    return {std::move(count), rnntune::open_device("cpu").value(),
            std::make_shared<LendingClock>(calls)};
  }
  CountedStep step(const std::string& name) {
    return {name, [this, name]() -> Status { return calls.push_back(name), Status(); }};
  }

  std::vector<std::string> calls;
};

TEST_F(StepCountingTest, CountsEachStepWithTheProfilerForItself) {
  StepCounting two_passes = counting([](const Probe& run) -> Result<CounterReport> {
    for (int pass = 0; pass < 2; ++pass) EXPECT_TRUE(run().ok());
    const double none = std::numeric_limits<double>::quiet_NaN();
    return CounterReport{
        "GX1", 2, {{"l2_bytes", "lts__t_bytes.sum", 7}, {"time_ns", "t", none}}, {}};
  });
  const std::vector<CountedStep> steps{step("rnntune"), step("cudnn")};
  const auto counted = two_passes.count(steps);
  EXPECT_THAT(calls, ElementsAre("lent", "rnntune", "rnntune", "cudnn", "cudnn", "back"));
  ASSERT_THAT(counted, SizeIs(2));
  EXPECT_EQ(counted[1].contender, "cudnn");
  EXPECT_EQ(counted[1].chip, "GX1");
  EXPECT_EQ(counted[1].passes, 2);
  EXPECT_THAT(counted[1].values, ElementsAre(Pair("l2_bytes", 7)));  // what is no number is none
  EXPECT_EQ(two_passes.news(), "");
}

TEST_F(StepCountingTest, ARefusalIsToldOnceAndNothingIsAskedAgain) {
  int asked = 0;
  StepCounting refused = counting([&](const Probe&) -> Result<CounterReport> {
    ++asked;
    return unsupported("cuptiRangeProfilerEnable: not permitted");
  });
  const std::vector<CountedStep> steps{step("rnntune"), step("cudnn")};
  EXPECT_THAT(refused.count(steps), SizeIs(0));
  EXPECT_EQ(refused.news(), "no GPU counters: cuptiRangeProfilerEnable: not permitted");
  EXPECT_THAT(refused.count(steps), SizeIs(0));
  EXPECT_EQ(refused.news(), "");
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(calls, ElementsAre("lent", "back"));
}

TEST_F(StepCountingTest, AStepThatFailsIsAReason) {
  StepCounting passing =
      counting([](const Probe& run) -> Result<CounterReport> { return run().error(); });
  const std::vector<CountedStep> steps{
      {"rnntune", [] {
         return Status(Error{ErrorCode::internal, "an illegal address"});
       }}};
  EXPECT_THAT(passing.count(steps), SizeIs(0));
  EXPECT_EQ(passing.news(), "no GPU counters: an illegal address");
}

TEST_F(StepCountingTest, WithoutAGpuNothingIsCountedAndNothingSaid) {
  const auto clock = std::make_shared<LendingClock>(calls);
  StepCounting none = open_counting(rnntune::open_device("cpu").value(), clock, true);
  const std::vector<CountedStep> steps{step("rnntune")};
  EXPECT_THAT(none.count(steps), SizeIs(0));
  EXPECT_EQ(none.news(), "");
  EXPECT_THAT(calls, SizeIs(0));
}

TEST(StepCounters, ReadBackWhatWasWritten) {
  StepCounters read;
  ASSERT_EQ(from_json(to_json(sample()), read), "");
  EXPECT_EQ(read, sample());
  for (const char* field : {"contender", "chip", "values"}) {
    Json json = to_json(sample());
    json.erase(field);
    EXPECT_THAT(from_json(json, read), HasSubstr(field));
  }
}

TEST(StepCounters, AFinalRecordKeepsThemAndTheNotes) {
  Final final;
  final.problem = kProblem;
  final.config = parse_config("cell:threads=2").value();
  final.time_us = {500, 499, 501, 41, 0.02, "converged"};
  EXPECT_FALSE(to_json(final).contains("counters"));
  EXPECT_FALSE(to_json(final).contains("notes"));
  final.counters = {sample(), sample("cudnn")};
  final.notes = {{"cudnn", {"standard packed: 3 us", "persist_static packed: refused"}}};
  Final read;
  ASSERT_EQ(from_json(to_json(final), read), "");
  EXPECT_EQ(read.counters, final.counters);
  EXPECT_EQ(read.notes, final.notes);
  Json broken = to_json(final);
  broken["counters"][1].erase("chip");
  EXPECT_EQ(from_json(broken, read), ".counters.chip: expected a string");
}

BenchRow bench_row(const std::string& contender, std::optional<StepCounters> counters) {
  BenchRow row;
  row.problem_name = "ptb";
  row.problem = parse_problem(kProblem).value();
  row.contender.name = contender;
  row.timing.samples_us = row.timing.cpu_us = {500, 501, 499};
  row.timing.summary = summarize(row.timing.samples_us);
  row.ratio.median = 1;
  row.counters = std::move(counters);
  return row;
}

TEST(StepCounters, ResultsOfBenchHoldThem) {
  std::ostringstream out;
  write_results(out, {bench_row("rnntune", sample()), bench_row("unfused", std::nullopt)},
                samples::device(), {}, 0);
  const Json json = Json::parse(out.str());
  EXPECT_EQ(json["benchmarks"][0]["gpu_dram_read_bytes"], 3 << 20);
  const auto rows = parse_results(out.str(), "r").value().rows;
  ASSERT_THAT(rows, SizeIs(2));
  ASSERT_TRUE(rows[0].counters.has_value());
  EXPECT_EQ(rows[0].counters->contender, "rnntune");
  EXPECT_EQ(rows[0].counters->chip, "GH100");
  EXPECT_EQ(rows[0].counters->passes, 5);
  EXPECT_EQ(to_report(*rows[0].counters).stalls, to_report(sample()).stalls);
  EXPECT_EQ(to_report(*rows[0].counters).dram_write_bytes, 1 << 20);
  EXPECT_FALSE(rows[1].counters.has_value());
}

TEST(StepCounters, EveryCounterWithAMeaningIsShown) {
  // The names that to_report looks for are those that are counted.
  StepCounters all{"rnntune", "GH100", 5, {}};
  std::size_t stalls = 0;
  for (const Counter& counter : counters()) {
    all.values.emplace_back(counter.name, 50);
    stalls += std::string(counter.name).starts_with("stall_");
  }
  const reports::GpuCounters report = to_report(all);
  EXPECT_GE(stalls, 10u);
  EXPECT_THAT(report.stalls, SizeIs(stalls));
  for (const auto& bytes : {report.dram_read_bytes, report.dram_write_bytes, report.l2_bytes}) {
    EXPECT_EQ(bytes, 50);
  }
  for (const auto& share :
       {report.dram_throughput, report.tensor_pipe, report.fma_pipe, report.occupancy}) {
    EXPECT_EQ(share, 0.5);
  }
  EXPECT_THAT(to_report({"rnntune", "GH100", 5, {{"stall_wait_count", 5}}}).stalls, SizeIs(0));
}

TEST(StepCounters, AreALineAndATable) {
  EXPECT_EQ(reports::counters_line(to_report(sample("cudnn"))),
            "counters of cudnn: DRAM 4 MiB, of DRAM peak 40.0%, tensor pipe 0%, occupancy 25.0%, "
            "warps wait for long scoreboard 45.0%, barrier 12.0%");
  EXPECT_EQ(reports::counters_line(to_report({"cudnn", "GH100", 1, {}})),
            "counters of cudnn: none");

  reports::Report report;
  report.problems.emplace_back().name = "ptb";
  EXPECT_THAT(reports::markdown_page(report), Not(HasSubstr("GPU counters")));
  EXPECT_THAT(reports::html_page(report), Not(HasSubstr("GPU counters")));
  report.problems[0].counters = {to_report(sample()), to_report({"cudnn", "GH100", 1, {}})};
  const reports::Table table = reports::counters_table(report);
  ASSERT_THAT(table.rows, SizeIs(2));
  for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
  EXPECT_EQ(table.rows[0][2].text, "4 MiB");
  EXPECT_EQ(table.rows[0][2].detail, "1 MiB written");
  EXPECT_EQ(table.rows[0].back().text, "long scoreboard 45.0%, barrier 12.0%");
  EXPECT_EQ(table.rows[1][2].text, "\u2013");
  for (const std::string& page : {reports::markdown_page(report), reports::html_page(report)}) {
    EXPECT_THAT(page, HasSubstr("GPU counters"));
    EXPECT_THAT(page, HasSubstr("long scoreboard 45.0%, barrier 12.0%"));
    EXPECT_THAT(page, HasSubstr("1 MiB written"));
  }
  report.problems[0].counters[0].dram_read_bytes = -5e6;
  EXPECT_EQ(reports::counters_table(report).rows[0][2].text, "invalid");
}

TEST(StepCounters, AReportShowsThoseOfTheConfigItShows) {
  Final final;
  final.problem = kProblem;
  final.config = parse_config("cell:threads=2").value();
  final.time_us = {500, 499, 501, 41, 0.02, "converged"};
  final.counters = {sample()};
  ReportSources sources;
  sources.journal.emplace().finals = {final};
  ASSERT_THAT(build_report(sources).problems.at(0).counters, SizeIs(1));

  Database database;
  Entry entry = samples::entry(kProblem);
  put(database, samples::device(), entry);
  sources.database = find_device(database, samples::device());
  EXPECT_THAT(build_report(sources).problems.at(0).counters, SizeIs(0)) << "another config's";
  entry.config = final.config;
  put(database, samples::device(), entry);
  EXPECT_THAT(build_report(sources).problems.at(0).counters, SizeIs(1));

  std::ostringstream out;
  BenchRow ours = bench_row("rnntune", sample());
  ours.contender.config = final.config;
  write_results(out, {ours, bench_row("cudnn", sample("cudnn"))}, samples::device(), {}, 0);
  sources.results = parse_results(out.str(), "r").value();
  const auto counters = build_report(sources).problems.at(0).counters;
  ASSERT_THAT(counters, SizeIs(2));
  EXPECT_EQ(counters[1].contender, "cudnn");
}

}  // namespace
}  // namespace rnntune::tuner
