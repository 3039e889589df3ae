// SPDX-License-Identifier: Apache-2.0
#include "tuner/measure/statistics.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <vector>

namespace rnntune::tuner {
namespace {

// Largest k >= 1 with P(Binomial(n, 1/2) < k) <= 2.5%: the median lies in [x_k, x_(n+1-k)],
// counted from 1, with at least 95%. 0 where even k = 1 fails. Logarithms keep the terms of a large
// n from underflowing.
std::size_t lower_rank(std::size_t n) {
  const double count = static_cast<double>(n);
  const double log_half_to_n = -count * std::log(2.0);
  double tail = 0;
  std::size_t k = 0;
  while (k <= n / 2) {
    const double i = static_cast<double>(k);
    tail += std::exp(std::lgamma(count + 1) - std::lgamma(i + 1) - std::lgamma(count - i + 1) +
                     log_half_to_n);
    if (tail > 0.025) break;
    ++k;
  }
  return k;
}

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> copy(samples.begin(), samples.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

double median_of_sorted(const std::vector<double>& samples) {
  const std::size_t n = samples.size();
  if (n == 0) return std::numeric_limits<double>::quiet_NaN();
  return n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
}

std::optional<Interval> interval_of_sorted(const std::vector<double>& samples) {
  const std::size_t rank = lower_rank(samples.size());
  if (rank == 0) return std::nullopt;
  return Interval{samples[rank - 1], samples[samples.size() - rank]};
}

}  // namespace

double median(std::span<const double> samples) { return median_of_sorted(sorted(samples)); }

std::optional<Interval> median_interval(std::span<const double> samples) {
  return interval_of_sorted(sorted(samples));
}

std::optional<double> Summary::noise() const {
  if (!interval || !(median > 0)) return std::nullopt;
  return (interval->high - interval->low) / median;
}

Summary summarize(std::span<const double> samples) {
  const std::vector<double> order = sorted(samples);
  return {median_of_sorted(order), interval_of_sorted(order), static_cast<int>(order.size())};
}

Summary paired_ratio(std::span<const double> ours, std::span<const double> theirs) {
  assert(ours.size() == theirs.size());
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.size(); ++i) ratios.push_back(theirs[i] / ours[i]);
  return summarize(ratios);
}

}  // namespace rnntune::tuner
