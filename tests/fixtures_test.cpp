// SPDX-License-Identifier: Apache-2.0
// Both float64 references against results in closed form, which also name the mistakes that other
// numbers would show.
#include "tests/fixtures.hpp"

#include <gtest/gtest.h>

namespace rnntune::reference {
namespace {

std::vector<float> narrow(const std::vector<double>& v) { return {v.begin(), v.end()}; }

TEST(Fixtures, HoldForBothReferences) {
  const std::vector<Fixture> fixtures = read_fixtures(RNNTUNE_TEST_DATA "/fixtures.json");
  ASSERT_GE(fixtures.size(), 6u);
  for (const Fixture& f : fixtures) {
    ASSERT_EQ(reference_why_not(f.problem), "") << f.id;
    for (auto* step :
         {&blas64_step,
          static_cast<Outputs<double> (*)(const Problem&, const Inputs&)>(&oracle_step)}) {
      const Outputs<double> out = step(f.problem, f.inputs);
      EXPECT_EQ(f.difference(narrow(out.y), narrow(out.c_n)), "");
    }
  }
}

// A fixture that a known mistake passes would prove nothing.
TEST(Fixtures, TellTheKnownMistakes) {
  int mistakes = 0;
  for (const Fixture& f : read_fixtures(RNNTUNE_TEST_DATA "/fixtures.json"))
    for (const WrongResult& wrong : f.wrong) {
      EXPECT_NE(f.difference(narrow(wrong.y), narrow(wrong.c_n)), "") << f.id << wrong.mistake;
      ++mistakes;
    }
  EXPECT_GE(mistakes, 4);
}

}  // namespace
}  // namespace rnntune::reference
