// SPDX-License-Identifier: Apache-2.0
// `rnntune db`, run in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tests/database_samples.hpp"
#include "tuner/command.hpp"

namespace rnntune::tuner {
namespace {

using samples::device;
using samples::entry;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Output {
  int code;
  std::string out;
  std::string err;
};

Output db(std::vector<std::string> arguments) {
  const auto all = commands();
  const auto row = std::find_if(all.begin(), all.end(), [](const Command* command) {
    return std::string(command->name) == "db";
  });
  CLI::App app;
  const Run run = (*row)->setup(app);
  std::reverse(arguments.begin(), arguments.end());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Output output{kBadInput, {}, {}};
  try {
    app.parse(arguments);
    output.code = run();
  } catch (const CLI::ParseError& error) {
    output.err = error.what();
  } catch (const BadInput& error) {
    output.err = error.what();
  }
  output.out = ::testing::internal::GetCapturedStdout();
  output.err += ::testing::internal::GetCapturedStderr();
  return output;
}

class DbCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    samples::write_database(a_, device(), {entry(), entry("gru:T5,B1,I3,H7,f32")});
    samples::write_database(b_, device("cpu:skylake", "avx2"), {entry()});
  }
  samples::Folder folder_;
  std::string a_ = folder_ / "a.json";
  std::string b_ = folder_ / "b.json";
  std::string out_ = folder_ / "out.json";
};

TEST_F(DbCommandTest, ShowsEntriesOfAllFiles) {
  const Output output = db({"show", a_, b_});
  EXPECT_EQ(output.code, kFine);
  EXPECT_THAT(output.out, AllOf(HasSubstr("cpu:zen4"), HasSubstr("cpu:skylake"),
                                HasSubstr("lstm:L2,T35,B20,I650,H650,f32  812.4"),
                                HasSubstr("onednn 1.20x"), HasSubstr("cell:layout=tbh")));
  EXPECT_THAT(output.err, HasSubstr("3 entries of 2 devices"));
  EXPECT_EQ(db({"show", "--db", a_, "--quiet"}).err, "");
}

TEST_F(DbCommandTest, ShowFilters) {
  EXPECT_THAT(db({"show", a_, b_, "--filter", "^gru"}).out,
              AllOf(HasSubstr("gru:L1"), Not(HasSubstr("lstm")), Not(HasSubstr("skylake"))));
  EXPECT_THAT(db({"show", a_, b_, "--filter", "skylake"}).out, Not(HasSubstr("zen4")));
  const Output none = db({"show", a_, "--filter", "rnn_relu"});
  EXPECT_EQ(none.code, kBadInput);
  EXPECT_THAT(none.err, HasSubstr("no entry matches 'rnn_relu'"));
  EXPECT_THAT(db({"show", a_, "--filter", "("}).err, HasSubstr("not a regular expression"));
}

TEST_F(DbCommandTest, ShowAsJsonIsADatabase) {
  const Output output = db({"show", a_, "--json", "--quiet"});
  const Result<Database> database = parse_database(output.out, "stdout");
  ASSERT_TRUE(database.ok());
  EXPECT_EQ(write_text(*database), samples::file_text(a_));
}

TEST_F(DbCommandTest, MergesIntoANewOrAnOldFile) {
  EXPECT_EQ(db({"merge", out_, a_, b_}).code, kFine);
  const std::string text = samples::file_text(out_);
  const Output again = db({"merge", out_, b_, a_});
  EXPECT_EQ(again.code, kFine);
  EXPECT_THAT(again.err, HasSubstr("3 entries of 2 devices, 0 of them new"));
  EXPECT_EQ(samples::file_text(out_), text);
}

TEST_F(DbCommandTest, MergeWritesNothingWhereAFileIsBad) {
  samples::write_file(b_, "{");
  const Output output = db({"merge", out_, a_, b_});
  EXPECT_EQ(output.code, kBadInput);
  EXPECT_THAT(output.err, HasSubstr(b_));
  EXPECT_FALSE(std::filesystem::exists(out_));
  EXPECT_EQ(db({"merge", b_, a_}).code, kBadInput);
  EXPECT_EQ(samples::file_text(b_), "{");
}

TEST_F(DbCommandTest, ValidateSaysYesOrWhyNot) {
  const Output good = db({"validate", a_, b_});
  EXPECT_EQ(good.code, kFine);
  EXPECT_EQ(good.out, "");
  EXPECT_THAT(good.err, HasSubstr("1 entry of 1 device, all sound"));
  std::string text = samples::file_text(b_);
  text.replace(text.find("\"error\":1e-07"), 13, "\"error\":1e+07");
  samples::write_file(b_, text);
  const Output bad = db({"validate", a_, b_});
  EXPECT_EQ(bad.code, kCheckFailed);
  EXPECT_THAT(bad.out, AllOf(HasSubstr(b_ + ": devices[0].entries[0]: validation: failed"),
                             Not(HasSubstr(a_))));
  EXPECT_THAT(db({"show", b_, a_}).err, HasSubstr("1 damaged entries passed over"));
}

TEST_F(DbCommandTest, BadUsage) {
  EXPECT_EQ(db({}).code, kBadInput);
  EXPECT_EQ(db({"merge", out_}).code, kBadInput);
  EXPECT_THAT(db({"show", "/nonexistent/x.json"}).err, HasSubstr("/nonexistent/x.json"));
  EXPECT_EQ(db({"validate", "/nonexistent/x.json"}).code, kBadInput);
  EXPECT_EQ(db({"show", ""}).code, kBadInput);
}

}  // namespace
}  // namespace rnntune::tuner
