// SPDX-License-Identifier: Apache-2.0
#include "tuner/records/suite.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace rnntune::tuner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A suite of one problem entry, given as the fields after its name.
std::string with_problem(const std::string& fields) {
  return R"({"format":"rnntune-suite","version":1,"name":"s","description":"d","source":"o",)"
         R"("problems":[{"name":"a",)" +
         fields + "}]}";
}

std::string error_of(const std::string& text) {
  const Result<Suite> suite = parse_suite(text, "x.json");
  return suite.ok() ? "accepted" : suite.error().message;
}

TEST(Suite, ReadsNameProblemAndWeight) {
  const Result<Suite> suite = parse_suite(
      with_problem(R"("problem":"lstm:L2,T20,B20,I200,H200,f32","weight":2.5)"), "x.json");
  ASSERT_TRUE(suite.ok()) << suite.error().message;
  ASSERT_EQ(suite->problems.size(), 1u);
  const SuiteProblem& row = suite->problems.front();
  EXPECT_EQ(row.name, "a");
  EXPECT_EQ(row.problem, *parse_problem("lstm:L2,T20,B20,I200,H200,f32"));
  EXPECT_EQ(row.weight, 2.5);
  EXPECT_EQ(row.base, "");
}

TEST(Suite, ExpandsASweepWithTheLastParameterFastest) {
  const Result<Suite> suite = parse_suite(
      with_problem(R"("problem":"lstm:L2,T2,B2,I64,H64","sweep":{"G":[1,"4/8"],"P":[0,32]})"),
      "x.json");
  ASSERT_TRUE(suite.ok()) << suite.error().message;
  std::vector<std::string> names;
  for (const SuiteProblem& row : suite->problems) {
    names.push_back(row.name);
    EXPECT_EQ(row.base, "a");
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a_G1_P0", "a_G1_P32", "a_G4-8_P0", "a_G4-8_P32"}));
  EXPECT_EQ(suite->problems[0].problem.projection, 0);
  EXPECT_EQ(suite->problems[3].problem.projection, 32);
  EXPECT_EQ(suite->problems[3].problem.groups, (std::vector<std::int64_t>{4, 8}));
}

TEST(Suite, ErrorsNameFileEntryAndField) {
  const auto names = [](const char* field, const char* got) {
    return AllOf(HasSubstr("x.json: problem 1 'a': field '" + std::string(field) + "'"),
                 HasSubstr(got));
  };
  EXPECT_THAT(error_of(with_problem(R"("weight":1)")), names("problem", "missing"));
  EXPECT_THAT(error_of(with_problem(R"("problem":7)")), names("problem", "got 7"));
  EXPECT_THAT(error_of(with_problem(R"("problem":"lstm:T10,Babc")")), names("problem", "abc"));
  EXPECT_THAT(error_of(with_problem(R"("problem":"lstm:T0,B1,I1,H1")")), names("problem", "T"));
  const std::string fine = R"("problem":"lstm:T1,B1,I1,H1")";
  EXPECT_THAT(error_of(with_problem(fine + R"(,"weight":0)")), names("weight", "got 0"));
  EXPECT_THAT(error_of(with_problem(fine + R"(,"weight":"1")")), names("weight", "'1'"));
  EXPECT_THAT(error_of(with_problem(fine + R"(,"sweep":{})")), names("sweep", "{}"));
  EXPECT_THAT(error_of(with_problem(fine + R"(,"sweep":{"G":[]})")), names("sweep.G", "[]"));
  EXPECT_THAT(error_of(with_problem(fine + R"(,"sweep":{"G":[-1]})")), names("sweep.G", "-1"));
  EXPECT_THAT(error_of(with_problem(fine + R"(,"sweep":{"G":[1,1]})")), HasSubstr("twice"));
  EXPECT_THAT(error_of(with_problem(fine + R"(,"sweep":{"H":[2]})")), HasSubstr("'H'"));
  EXPECT_THAT(error_of(with_problem(fine + R"(,"wieght":1)")), HasSubstr("'wieght'"));
  EXPECT_THAT(error_of(with_problem(fine + R"(},{"name":"a",)" + fine)),
              HasSubstr("problem 2 'a': field 'name'"));
}

TEST(Suite, RefusesAFileOfAnotherKind) {
  EXPECT_THAT(error_of("{"), AllOf(HasSubstr("x.json"), HasSubstr("parse error")));
  EXPECT_THAT(error_of("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(error_of(R"({"format":"rnntune-database"})"), HasSubstr("'rnntune-database'"));
  EXPECT_THAT(error_of(R"({"format":"rnntune-suite","version":2})"),
              HasSubstr("expected 1, got 2"));
  EXPECT_THAT(error_of(R"({"format":"rnntune-suite","version":1,"name":"s","description":"d"})"),
              HasSubstr("'source' is missing"));
  EXPECT_THAT(error_of(R"({"format":"rnntune-suite","version":1,"name":"s","description":"d",)"
                       R"("source":"o","problems":[]})"),
              HasSubstr("'problems'"));
}

TEST(Suite, NamesAFileThatCannotBeRead) {
  const auto message = [](const std::string& path) { return load_suite(path).error().message; };
  EXPECT_THAT(message("/nonexistent/x.json"), HasSubstr("'/nonexistent/x.json'"));
  const std::string folder = std::filesystem::temp_directory_path().string();
  EXPECT_THAT(message(folder), HasSubstr(folder));
}

// Every suite that ships, at the sizes this test was built from.
TEST(Suite, ShippedSuitesLoad) {
  int suites = 0;
  for (const auto& file : std::filesystem::directory_iterator(RNNTUNE_SUITES)) {
    const Result<Suite> suite = load_suite(file.path().string());
    ASSERT_TRUE(suite.ok()) << suite.error().message;
    EXPECT_EQ(suite->name, file.path().stem().string());
    ++suites;
  }
  EXPECT_GE(suites, 6);
}

}  // namespace
}  // namespace rnntune::tuner
