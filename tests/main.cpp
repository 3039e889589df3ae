// SPDX-License-Identifier: Apache-2.0
// GoogleTest's main with one more flag: --source NAME runs the tests of one source file, so that
// one program holds them all, linked once, while each file still has a process and a row of its
// own. A name without tests is an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace {

// The patterns of all tests of NAME.cpp, as --gtest_filter takes them.
std::string tests_of(std::string_view name) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string patterns;
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int i = 0; i < suite.total_test_count(); ++i) {
      const testing::TestInfo& test = *suite.GetTestInfo(i);
      if (std::filesystem::path(test.file()).stem() != name) continue;
      patterns += (patterns.empty() ? "" : ":") + std::string(suite.name()) + "." + test.name();
    }
  }
  return patterns;
}

// What the user's own filter leaves out stays out.
std::string without(const std::string& patterns, const std::string& filter) {
  const std::size_t minus = filter.find('-');
  return minus == std::string::npos ? patterns : patterns + filter.substr(minus);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (argc == 1) return RUN_ALL_TESTS();
  if (argc != 3 || std::string_view(argv[1]) != "--source") {
    std::fprintf(stderr, "usage: %s [--source NAME] [--gtest_...]; unknown: %s\n", argv[0],
                 argv[1]);
    return 2;
  }
  const std::string patterns = tests_of(argv[2]);
  if (patterns.empty()) {
    std::fprintf(stderr, "--source: no test comes from %s.cpp\n", argv[2]);
    return 2;
  }
  GTEST_FLAG_SET(filter, without(patterns, GTEST_FLAG_GET(filter)));
  return RUN_ALL_TESTS();
}
