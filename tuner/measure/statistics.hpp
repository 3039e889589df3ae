// SPDX-License-Identifier: Apache-2.0
// Statistics of timing samples that assume no distribution: timings are skewed and have outliers.
#pragma once

#include <optional>
#include <span>

namespace rnntune::tuner {

// Fewest samples for which order statistics bound the median with 95% confidence.
inline constexpr int kFewestForInterval = 6;

struct Interval {
  double low = 0;
  double high = 0;
};

// Of an even number of samples the mean of the two in the middle. NaN for none.
double median(std::span<const double> samples);

// The narrowest symmetric pair of order statistics that holds the true median with at least 95%
// confidence (binomial tail at p = 1/2). None for fewer than six samples: no pair of theirs does.
std::optional<Interval> median_interval(std::span<const double> samples);

struct Summary {
  double median = 0;
  std::optional<Interval> interval;  // 95%, of the median
  int samples = 0;

  // Width of the interval relative to the median; none where there is no interval.
  std::optional<double> noise() const;
};

Summary summarize(std::span<const double> samples);

// The median of theirs[i] / ours[i], sample i of both taken side by side so that drift cancels.
// Above 1: ours is faster.
Summary paired_ratio(std::span<const double> ours, std::span<const double> theirs);

}  // namespace rnntune::tuner
