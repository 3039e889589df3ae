// SPDX-License-Identifier: Apache-2.0
// Few configs of a space that together hold every pair of parameter values that any of its configs
// holds.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "space.hpp"

namespace rnntune {

class PairwiseCover {
 public:
  PairwiseCover(const Space& space, const Space::Branch& branch, std::uint64_t seed)
      : space_(space), branch_(branch), random_(seed) {
    for (std::size_t i = 0; i < parameters(); ++i) {
      for (std::size_t j = i + 1; j < parameters(); ++j) {
        for (std::size_t a = 0; a < values(i); ++a) {
          for (std::size_t b = 0; b < values(j); ++b) open_.insert({{i, a}, {j, b}});
        }
      }
    }
  }

  // The pairs of which no config was found are left in open().
  std::vector<Config> configs() {
    std::vector<Config> all;
    std::set<Pair> absent;
    if (parameters() == 1) {  // no pairs
      for (std::size_t a = 0; a < values(0); ++a) all.push_back(config({a}));
    }
    while (!open_.empty()) {
      const Pair wanted = *open_.begin();
      std::size_t best = 0;
      Digits chosen;
      for (int attempt = 0; attempt < kAttempts; ++attempt) {
        const Digits digits = draw(wanted);
        const std::size_t gain = covered(digits);
        if (gain > best && space_.why_not(config(digits)).empty()) {
          best = gain;
          chosen = digits;
        }
      }
      if (best == 0) {
        absent.insert(*open_.begin());
        open_.erase(open_.begin());
        continue;
      }
      cover(chosen);
      all.push_back(config(chosen));
    }
    open_ = std::move(absent);
    return all;
  }

  // As "schedule=wavefront,chunk=0".
  std::vector<std::string> open() const {
    std::vector<std::string> texts;
    for (const auto& [one, other] : open_) texts.push_back(text(one) + "," + text(other));
    return texts;
  }

 private:
  using Value = std::pair<std::size_t, std::size_t>;  // parameter, value
  using Pair = std::pair<Value, Value>;
  using Digits = std::vector<std::size_t>;
  static constexpr int kAttempts = 200;

  std::size_t parameters() const { return branch_.parameters.size(); }
  std::size_t values(std::size_t i) const { return branch_.parameters[i].values.size(); }
  std::string text(const Value& v) const {
    return branch_.parameters[v.first].name + "=" + branch_.parameters[v.first].values[v.second];
  }

  Digits draw(const Pair& wanted) {
    Digits digits(parameters());
    for (std::size_t i = 0; i < digits.size(); ++i) digits[i] = random_() % values(i);
    digits[wanted.first.first] = wanted.first.second;
    digits[wanted.second.first] = wanted.second.second;
    return digits;
  }
  template <class Visit>
  void each_pair(const Digits& digits, Visit visit) const {
    for (std::size_t i = 0; i < digits.size(); ++i) {
      for (std::size_t j = i + 1; j < digits.size(); ++j) visit({{i, digits[i]}, {j, digits[j]}});
    }
  }
  std::size_t covered(const Digits& digits) const {
    std::size_t count = 0;
    each_pair(digits, [&](const Pair& pair) { count += open_.count(pair); });
    return count;
  }
  void cover(const Digits& digits) {
    each_pair(digits, [&](const Pair& pair) { open_.erase(pair); });
  }
  Config config(const Digits& digits) const {
    Config config{branch_.variant->name, {}};
    for (std::size_t i = 0; i < digits.size(); ++i) {
      config.params.emplace_back(branch_.parameters[i].name,
                                 branch_.parameters[i].values[digits[i]]);
    }
    return config;
  }

  const Space& space_;
  const Space::Branch& branch_;
  std::mt19937_64 random_;
  std::set<Pair> open_;
};

}  // namespace rnntune
