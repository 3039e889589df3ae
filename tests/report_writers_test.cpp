// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "reports/html.hpp"
#include "reports/markdown.hpp"
#include "reports/summary.hpp"
#include "reports/table.hpp"

namespace rnntune::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

ProblemReport tuned(const std::string& name, double time_us, Interval against_unfused) {
  ProblemReport problem;
  problem.name = name;
  problem.problem = "lstm:T1,B1,I1,H1,f32";
  problem.config = "cell:layout=tbh,threads=2";
  problem.variant = "cell";
  problem.threads = 2;
  problem.time_us = Interval{time_us, 0.99 * time_us, 1.01 * time_us};
  problem.gflops = 100;
  problem.fraction_of_peak = 0.5;
  problem.against = {{"unfused", "", "", std::nullopt, against_unfused}};
  problem.validation = {"oracle", 1e-6, 2e-5, "y"};
  problem.complete = true;
  return problem;
}

Report sample() {
  Report report;
  report.title = "title";
  report.device = "device";
  report.problems = {tuned("won", 1000, {2, 1.9, 2.1}), tuned("even", 1000, {1, 0.9, 1.1}),
                     tuned("lost", 1000, {0.5, 0.4, 0.6})};
  return report;
}

const Cell& cell(const Table& table, std::size_t row, const std::string& title) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].title == title) return table.rows.at(row).at(i);
  }
  throw std::out_of_range("no column " + title);
}

TEST(ReportTable, ARatioIsGoodOrBadOnlyWithItsWholeInterval) {
  const Table table = summary_table(sample());
  EXPECT_EQ(cell(table, 0, "vs unfused").tone, Tone::good);
  EXPECT_EQ(cell(table, 1, "vs unfused").tone, Tone::plain);
  EXPECT_EQ(cell(table, 2, "vs unfused").tone, Tone::bad);
}

TEST(ReportTable, WhatIsUnknownIsADashWhatIsWrongIsInvalid) {
  Report report = sample();
  report.problems[0].gflops.reset();
  report.problems[1].time_us = Interval{0, 0, 0};
  report.problems[2].against[0].ratio = Interval{-1, 1, 1};
  report.problems[2].validation->error = 1;
  const Table table = summary_table(report);
  EXPECT_EQ(cell(table, 0, "GFLOP/s").text, "\u2013");
  EXPECT_EQ(cell(table, 1, "Step time").text, "invalid");
  EXPECT_EQ(cell(table, 1, "Step time").order, std::nullopt);
  EXPECT_EQ(cell(table, 2, "vs unfused").text, "invalid");
  EXPECT_EQ(cell(table, 2, "Error").tone, Tone::bad);
  EXPECT_EQ(mean_ratio(report, "unfused").count, 2);
}

TEST(ReportTable, MeansAreGeometric) {
  EXPECT_NEAR(mean_ratio(sample(), "unfused").ratio, 1, 1e-12);
  EXPECT_EQ(mean_ratio(sample(), "onednn").count, 0);
}

TEST(ReportTable, FasterThanTheMachineAllowsIsMarked) {
  Report report = sample();
  report.problems[0].fraction_of_roofline = 1.2;
  report.problems[1].fraction_of_roofline = 0.9;
  const Table table = summary_table(report);
  EXPECT_EQ(cell(table, 0, "Of roofline").tone, Tone::bad);
  EXPECT_EQ(cell(table, 1, "Of roofline").tone, Tone::plain);
}

TEST(ReportTable, FailuresAreCountedByOutcomeWithTheFirstReason) {
  Report report = sample();
  for (const char* outcome : {"ok", "crashed", "wrong_result", "crashed"}) {
    Attempt attempt;
    attempt.outcome = outcome;
    attempt.reason = outcome + std::to_string(report.problems[1].attempts.size());
    report.problems[1].attempts.push_back(attempt);
  }
  const Table table = failure_table(report);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(cell(table, 0, "Outcome").text, "crashed");
  EXPECT_EQ(cell(table, 0, "Configs").text, "2");
  EXPECT_EQ(cell(table, 0, "First reason").text, "crashed1");
}

// Characters, not bytes, before `word`.
std::ptrdiff_t place_of(const std::string& line, const std::string& word) {
  const auto end = line.begin() + static_cast<std::ptrdiff_t>(line.find(word));
  return std::count_if(line.begin(), end, [](char c) { return (c & 0xc0) != 0x80; });
}

TEST(ReportSummary, ColumnsLineUpAndTheConfigIsLast) {
  std::istringstream lines(summary_text(sample()));
  std::string head, first;
  std::getline(lines, head);
  std::getline(lines, first);
  EXPECT_EQ(place_of(head, "Best config"), place_of(first, "cell:layout"));
  EXPECT_TRUE(first.ends_with("cell:layout=tbh,threads=2"));
  EXPECT_THAT(summary_text(sample()), HasSubstr("vs unfused: 1.00\u00d7 (geometric mean of 3)"));
}

TEST(ReportSummary, ControlCharactersStayOffTheTerminal) {
  Report report = sample();
  report.problems[0].name = "a\x1b[31mred";
  EXPECT_THAT(summary_text(report), Not(HasSubstr("\x1b")));
}

TEST(ReportMarkdown, EscapesWhatWouldBreakATable) {
  Report report = sample();
  report.problems[0].name = "a|b\n<script>`*";
  const std::string text = markdown_page(report);
  EXPECT_THAT(text, HasSubstr("| a\\|b &lt;script>\\`\\*<br>"));
}

TEST(ReportHtml, HostileTextStaysText) {
  Report report = sample();
  const std::string hostile = "</script><script>x</script><!--\"'&{{data}}\xff";
  report.title = report.device = report.problems[0].name = report.problems[0].config = hostile;
  report.notes = {hostile};
  const std::string page = html_page(report);
  EXPECT_THAT(page, Not(HasSubstr("<script>x")));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;script&gt;x"));
  EXPECT_THAT(page_data(report), Not(HasSubstr("<")));
  const auto data = nlohmann::json::parse(page_data(report));
  EXPECT_EQ(data["problems"][0]["name"], hostile.substr(0, hostile.size() - 1) + "\ufffd");
}

TEST(ReportHtml, DataHoldsNoFigureThatIsNone) {
  Report report = sample();
  report.problems[0].time_us = Interval{0, 0, 0};
  report.problems[0].gflops = -1;
  report.problems[0].against[0].ratio = Interval{0, 0, 0};
  report.limits = {{1, 0, {{1024, -5}}}};
  const auto data = nlohmann::json::parse(page_data(report));
  EXPECT_TRUE(data["problems"][0]["time_us"].is_null());
  EXPECT_TRUE(data["problems"][0]["gflops"].is_null());
  EXPECT_TRUE(data["problems"][0]["against"][0]["ratio"].is_null());
  EXPECT_TRUE(data["limits"][0]["bandwidth"].empty());
}

}  // namespace
}  // namespace rnntune::reports
