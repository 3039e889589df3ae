// SPDX-License-Identifier: Apache-2.0
// The last round: the best configs and the opponents are timed again, interleaved, since times
// taken minutes apart drift by more than what separates good configs.
#pragma once

#include <span>

#include "tuner/contender.hpp"

namespace rnntune::tuner {

struct Race {
  std::size_t winner = 0;         // index of the config that is recorded
  std::vector<std::size_t> tied;  // configs that cannot be told apart from the fastest one
  Comparison comparison;          // configs first, then opponents; ratios are over the winner
};

// `configs` and then `opponents` are timed in one interleaved run. Among the configs tied with the
// fastest, the one with the least workspace and reserve wins.
Result<Race> race(std::span<const Contender> configs, std::span<const Contender> opponents,
                  const MeasurePolicy& policy, Clock& clock);

// Whether contender i was the fastest of those that have its name, all timed in one run.
bool fastest_of_name(std::span<const Contender> contenders, std::span<const Timing> timings,
                     std::size_t i);

// What the records keep of an opponent.
Against to_against(const Contender& opponent, const Timing& timing, const Summary& ratio);

}  // namespace rnntune::tuner
