// SPDX-License-Identifier: Apache-2.0
// The race checker reports what the missing barriers of simt_kernels.cuh allow, and nothing else,
// in every order of the threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/simt_race_kernels.hpp"

#if defined(RNNTUNE_SIMT_RACE_CHECKER)

namespace rnntune::simt {
namespace {

using testing::HasSubstr;

// "simt_kernels.cuh:38", the line with the mark.
std::string line_of(const std::string& mark) {
  std::ifstream file(RNNTUNE_SIMT_KERNELS);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find("// [" + mark + "]") != line.npos) {
      return "simt_kernels.cuh:" + std::to_string(number);
    }
  }
  return "no mark " + mark;
}

class RaceTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RaceTest, ReportsTheRacesAndNothingElse) {
  for (const RaceCase& one : race_cases()) {
    SCOPED_TRACE(one.name);
    const Status status = one.run(GetParam());
    EXPECT_EQ(status.ok(), one.expected.empty()) << (status.ok() ? "" : status.error().message);
    if (status.ok()) continue;
    EXPECT_THAT(status.error().message, HasSubstr("race: "));
    for (const char* part : one.expected) EXPECT_THAT(status.error().message, HasSubstr(part));
    for (const char* mark : one.lines) {
      EXPECT_THAT(status.error().message, HasSubstr(line_of(mark)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, RaceTest, testing::Values(0, 1, 2, 3));

}  // namespace
}  // namespace rnntune::simt

#else

TEST(RaceTest, ReportsTheRacesAndNothingElse) {
  GTEST_SKIP() << "the race checker needs kernels compiled with -fsanitize=thread, which this "
                  "build's sanitizers exclude";
}

#endif
