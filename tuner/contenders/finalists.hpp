// SPDX-License-Identifier: Apache-2.0
// The last round: the best configs and the opponents are timed again, interleaved, since times
// taken minutes apart drift by more than what separates good configs.
#pragma once

#include <span>

#include "tuner/contenders/contender.hpp"

namespace rnntune::tuner {

struct Race {
  std::size_t winner = 0;         // index of the config that is recorded
  std::vector<std::size_t> tied;  // configs of ours that cannot be told apart from the fastest one
  Comparison comparison;          // ratios are over the winner
};

// All are timed in one interleaved run. Among ours, the libraries left out, the fastest wins; of
// those tied with it the one with the least workspace and reserve. One of them must be ours.
Result<Race> race(std::span<const Contender> racers, const MeasurePolicy& policy, Clock& clock);

// Whether contender i was the fastest of those that have its name, all timed in one run.
bool fastest_of_name(std::span<const Contender> contenders, std::span<const Timing> timings,
                     std::size_t i);

// What the records keep of an opponent.
Against to_against(const Contender& opponent, const Timing& timing, const Summary& ratio);

}  // namespace rnntune::tuner
