// SPDX-License-Identifier: Apache-2.0
// How an opponent chooses among the ways it has. Exact times come from the tuner. Header-only, for
// the plugins.
#pragma once

#include <algorithm>
#include <chrono>

#include "reference/opponent.hpp"

namespace rnntune::reference {

// The best of at least three steps and at most 20 ms.
inline Result<double> seconds_of(OpponentRun& run) {
  using Clock = std::chrono::steady_clock;
  if (Status status = run.step(); !status.ok()) return status.error();
  double best = 1e30, total = 0;
  for (int k = 0; k < 3 || (total < 0.02 && k < 200); ++k) {
    const auto start = Clock::now();
    if (Status status = run.step(); !status.ok()) return status.error();
    const double taken = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, taken);
    total += taken;
  }
  return best;
}

}  // namespace rnntune::reference
