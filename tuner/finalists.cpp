// SPDX-License-Identifier: Apache-2.0
#include "tuner/finalists.hpp"

namespace rnntune::tuner {
namespace {

std::size_t fastest(const Comparison& comparison, std::size_t configs) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < configs; ++i) {
    if (comparison.timings[i].summary.median < comparison.timings[best].summary.median) best = i;
  }
  return best;
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

Result<Race> race(std::span<const Contender> configs, std::span<const Contender> opponents,
                  const MeasurePolicy& policy, Clock& clock) {
  std::vector<Step> steps;
  for (const Contender& contender : configs) steps.push_back(contender.step);
  for (const Contender& contender : opponents) steps.push_back(contender.step);
  Result<Comparison> comparison = measure_interleaved(steps, policy, clock);
  if (!comparison.ok()) return comparison.error();
  Race race;
  race.comparison = std::move(comparison.value());
  race.winner = fastest(race.comparison, configs.size());
  refer_ratios_to(race.comparison, race.winner);
  const std::size_t quickest = race.winner;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    if (i == quickest || !tied(race.comparison.ratios[i])) continue;
    race.tied.push_back(i);
    if (memory(configs[i]) < memory(configs[race.winner])) race.winner = i;
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
