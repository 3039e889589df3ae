// SPDX-License-Identifier: Apache-2.0
#include "tuner/contenders/finalists.hpp"

#include <cassert>
#include <optional>

namespace rnntune::tuner {
namespace {

bool ours(const Contender& racer) { return !racer.config.variant.empty(); }

std::size_t fastest(std::span<const Contender> racers, const Comparison& comparison) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < racers.size(); ++i) {
    const auto median = [&](std::size_t k) { return comparison.timings[k].summary.median; };
    if (ours(racers[i]) && (!best || median(i) < median(*best))) best = i;
  }
  assert(best);
  return *best;
}

std::size_t memory(const Contender& contender) {
  return contender.sizes.workspace + contender.sizes.reserve;
}

void refer_ratios_to(Comparison& comparison, std::size_t base) {
  for (std::size_t i = 0; i < comparison.timings.size(); ++i) {
    comparison.ratios[i] =
        paired_ratio(comparison.timings[base].samples_us, comparison.timings[i].samples_us);
  }
}

}  // namespace

Result<Race> race(std::span<const Contender> racers, const MeasurePolicy& policy, Clock& clock) {
  std::vector<Step> steps;
  for (const Contender& racer : racers) steps.push_back(racer.step);
  Result<Comparison> comparison = measure_interleaved(steps, policy, clock);
  if (!comparison.ok()) return comparison.error();
  Race race;
  race.comparison = std::move(comparison.value());
  race.winner = fastest(racers, race.comparison);
  refer_ratios_to(race.comparison, race.winner);
  const std::size_t quickest = race.winner;
  for (std::size_t i = 0; i < racers.size(); ++i) {
    if (i == quickest || !ours(racers[i]) || !tied(race.comparison.ratios[i])) continue;
    race.tied.push_back(i);
    if (memory(racers[i]) < memory(racers[race.winner])) race.winner = i;
  }
  if (race.winner != quickest) {
    std::erase(race.tied, race.winner);
    race.tied.push_back(quickest);
    refer_ratios_to(race.comparison, race.winner);
  }
  return race;
}

bool fastest_of_name(std::span<const Contender> contenders, std::span<const Timing> timings,
                     std::size_t i) {
  for (std::size_t other = 0; other < contenders.size(); ++other) {
    if (contenders[other].name != contenders[i].name) continue;
    if (timings[other].summary.median < timings[i].summary.median) return false;
  }
  return true;
}

Against to_against(const Contender& opponent, const Timing& timing, const Summary& ratio) {
  const Interval interval = ratio.interval.value_or(Interval{0, 0});
  return {opponent.name,
          opponent.version,
          opponent.algorithm,
          to_time_us(timing),
          {ratio.median, interval.low, interval.high}};
}

}  // namespace rnntune::tuner
