// SPDX-License-Identifier: Apache-2.0
// How the vectors of a matrix are cut into panels, and what threads get of them.
#include <gtest/gtest.h>

#include <algorithm>

#include "cpu/cell_common.hpp"
#include "cpu/team.hpp"

namespace rnntune::cpu {
namespace {

TEST(Panels, CoverAllVectorsOnce) {
  for (std::int64_t vectors = 1; vectors <= 60; ++vectors) {
    for (std::int64_t count = 1; count <= vectors; ++count) {
      const Panels panels{vectors, count};
      int widest = 0;
      std::int64_t end = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(panels.first(i), end);
        EXPECT_GE(panels.width(i), vectors / count);
        widest = std::max(widest, panels.width(i));
        end += panels.width(i);
      }
      EXPECT_EQ(end, vectors);
      EXPECT_EQ(widest, panels.widest()) << vectors << " in " << count;
    }
  }
}

// Wide panels in front would give the first thread more: 8 vectors of 13 in panels of up to two.
TEST(Panels, EqualNumbersOfThemAreEqualShares) {
  for (std::int64_t vectors = 1; vectors <= 60; ++vectors) {
    for (const int threads : {2, 3, 4}) {
      for (std::int64_t count = threads; count <= vectors; count += threads) {
        const Panels panels{vectors, count};
        for (int id = 0; id < threads; ++id) {
          const Range mine = split(count, threads, id);
          const std::int64_t share = panels.first(mine.end) - panels.first(mine.begin);
          EXPECT_GE(share, vectors / threads) << vectors << " in " << count << ", " << threads;
          EXPECT_LE(share, ceil_div(vectors, threads));
        }
      }
    }
  }
}

}  // namespace
}  // namespace rnntune::cpu
