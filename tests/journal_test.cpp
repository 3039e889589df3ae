// SPDX-License-Identifier: Apache-2.0
#include "tuner/records/journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tuner/command.hpp"

namespace rnntune::tuner {
namespace {

using testing::HasSubstr;

class JournalTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("rnntune-journal-" + std::to_string(getpid()) + "-" + test->name());
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "j.jsonl").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Journal open(const std::string& key = "silicon") {
    Result<Journal> journal = Journal::open(path_, key);
    EXPECT_TRUE(journal.ok()) << (journal.ok() ? "" : journal.error().message);
    return std::move(journal.value());
  }

  static SessionHeader header(const std::string& key = "silicon") {
    SessionHeader header;
    header.device.backend = "cpu";
    header.device.key = key;
    header.strategy = "random";
    return header;
  }

  static Attempt attempt(const std::string& tile, const std::string& hash = "text1") {
    return {"lstm:L1,T2,B3,I4,H5,f32", {"cell", {{"tile", tile}, {"threads", "2"}}}, hash};
  }

  static Record record(const Attempt& attempt, Outcome outcome = Outcome::ok) {
    Record record;
    record.attempt = attempt;
    record.outcome = outcome;
    record.reason = outcome == Outcome::ok ? "" : "why \"not\"";
    if (outcome == Outcome::ok) record.time_us = TimeUs{10, 9, 11, 20, 0.2, "converged"};
    record.validation = Validation{"oracle", 1e-7, 1e-5, "dW_hh[0]"};
    record.repeatable = false;
    record.workspace_bytes = 1;
    record.reserve_bytes = 2;
    record.packed_bytes = 3;
    return record;
  }

  std::string text() const {
    std::ifstream stream(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(JournalTest, EveryLineIsOnDiskWhenWriteReturns) {
  Journal journal = open();
  journal.write(header());
  EXPECT_THAT(text(), testing::StartsWith(R"({"format":"rnntune-journal","version":1,)"));
  journal.write(attempt("1"));
  EXPECT_THAT(text(), HasSubstr(R"({"type":"start","problem":"lstm:L1,T2,B3,I4,H5,f32")"));
  journal.write(record(attempt("1")));
  EXPECT_THAT(text(), HasSubstr(R"("outcome":"ok")"));
  EXPECT_EQ(text().back(), '\n');
}

TEST_F(JournalTest, FinishedEvaluationsComeBackWhole) {
  {
    Journal journal = open();
    journal.write(header());
    journal.write(attempt("1"));
    journal.write(record(attempt("1")));
    journal.write(attempt("2"));
    journal.write(record(attempt("2"), Outcome::wrong_result));
  }
  const Journal journal = open();
  const auto* first = journal.history(attempt("1"));
  ASSERT_TRUE(first && first->record);
  EXPECT_EQ(first->unfinished, 0);
  EXPECT_EQ(first->record->time_us, (TimeUs{10, 9, 11, 20, 0.2, "converged"}));
  EXPECT_EQ(first->record->validation, (Validation{"oracle", 1e-7, 1e-5, "dW_hh[0]"}));
  EXPECT_FALSE(first->record->repeatable);
  EXPECT_EQ(first->record->memory_bytes(), 3);
  const auto* second = journal.history(attempt("2"));
  ASSERT_TRUE(second && second->record);
  EXPECT_EQ(second->record->outcome, Outcome::wrong_result);
  EXPECT_EQ(second->record->reason, "why \"not\"");
  EXPECT_EQ(journal.history(attempt("3")), nullptr);
}

TEST_F(JournalTest, AnotherKernelTextOrDeviceIsAnotherEvaluation) {
  {
    Journal journal = open();
    journal.write(header());
    journal.write(record(attempt("1")));
    journal.write(header("other"));
    journal.write(record(attempt("2")));
  }
  EXPECT_EQ(open().history(attempt("1", "text2")), nullptr);
  EXPECT_EQ(open().history(attempt("2")), nullptr);
  EXPECT_EQ(open("other").history(attempt("1")), nullptr);
  EXPECT_NE(open("other").history(attempt("2")), nullptr);
}

TEST_F(JournalTest, StartsWithoutOutcomeAreCounted) {
  {
    Journal journal = open();
    journal.write(header());
    journal.write(attempt("1"));
    journal.write(attempt("2"));
    journal.write(header());
    journal.write(attempt("1"));
  }
  const Journal journal = open();
  EXPECT_EQ(journal.history(attempt("1"))->unfinished, 2);
  EXPECT_FALSE(journal.history(attempt("1"))->record);
  EXPECT_EQ(journal.history(attempt("2"))->unfinished, 1);
}

TEST_F(JournalTest, ATornLastLineCostsOnlyItself) {
  {
    Journal journal = open();
    journal.write(header());
    journal.write(attempt("1"));
    journal.write(record(attempt("1")));
    journal.write(attempt("2"));
  }
  const std::string whole = text();
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t size = last + 1; size < whole.size() - 1; ++size) {
    std::ofstream(path_, std::ios::binary) << whole.substr(0, size);
    Journal journal = open();
    EXPECT_EQ(journal.damaged_lines(), 1);
    EXPECT_TRUE(journal.history(attempt("1"))->record);
    journal.write(record(attempt("3")));  // on a line of its own
    journal = Journal(std::move(journal));
  }
  EXPECT_TRUE(open().history(attempt("3"))->record);
}

TEST_F(JournalTest, TooFewSamplesLeaveTheIntervalOut) {
  Record raced = record(attempt("1"));
  raced.time_us = TimeUs{10, NAN, NAN, 3, NAN, "raced"};
  {
    Journal journal = open();
    journal.write(header());
    journal.write(raced);
  }
  EXPECT_THAT(text(), HasSubstr(R"("time_us":{"median":10.0,"samples":3,"stop":"raced"})"));
  const Journal journal = open();
  ASSERT_TRUE(journal.history(attempt("1"))->record);
  EXPECT_TRUE(std::isnan(journal.history(attempt("1"))->record->time_us->low));
}

TEST_F(JournalTest, GarbageIsPassedOver) {
  std::ofstream(path_) << "\xff\xfe garbage\n[1,2]\n{\"type\":3}\n{\"type\":\"outcome\"}\n";
  Journal journal = open();
  EXPECT_EQ(journal.damaged_lines(), 2);  // no JSON object; what precedes a session is nobody's
  journal.write(header());
  std::ofstream(path_, std::ios::app) << R"({"type":"outcome","problem":"p"})"
                                      << "\n";
  { Journal closed = std::move(journal); }
  EXPECT_EQ(open().damaged_lines(), 3);
}

TEST_F(JournalTest, OneRunAtATime) {
  const Journal journal = open();
  const Result<Journal> second = Journal::open(path_, "silicon");
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("in use by another run"));
}

TEST_F(JournalTest, OnlyARegularFileIsAJournal) {
  for (const std::string& path : {std::string("/dev/null"), folder_.string()}) {
    EXPECT_FALSE(Journal::open(path, "silicon").ok()) << path;
  }
}

TEST_F(JournalTest, AFileThatCannotGrowIsBadInput) {
  Journal journal = open();
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{100, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &tight);
  EXPECT_THROW(journal.write(header()), BadInput);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
}

TEST(Outcomes, NamesReadBack) {
  for (int i = 0; i <= static_cast<int>(Outcome::untrusted); ++i) {
    const auto outcome = static_cast<Outcome>(i);
    EXPECT_EQ(parse_outcome(to_string(outcome)), outcome);
  }
  EXPECT_FALSE(parse_outcome("fine"));
}

}  // namespace
}  // namespace rnntune::tuner
