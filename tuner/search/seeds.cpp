// SPDX-License-Identifier: Apache-2.0
#include "tuner/search/seeds.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "database/database.hpp"
#include "database/lookup.hpp"
#include "paths.hpp"

namespace rnntune::tuner {
namespace {

constexpr std::size_t kSimilar = 3;

// The distance of shapes, blind to the number of layers, which say little about a layer's config.
double seed_distance(const Problem& a, Problem b) {
  b.layers = a.layers;
  return shape_distance(a, b);
}

std::vector<Config> winners_nearby(const Problem& problem, const DeviceInfo& device,
                                   const std::string& db) {
  const Result<Database> database = read_database(db);
  if (!database.ok()) return {};  // a first run has none; `save` reports a bad one
  const DeviceRecord* const record = find_device(*database, device);
  if (record == nullptr) return {};
  std::vector<std::pair<double, Config>> found;
  for (const Entry& entry : record->entries) {
    const double distance = seed_distance(problem, entry.problem);
    if (std::isfinite(distance)) found.emplace_back(distance, entry.config);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Config> configs;
  for (auto& [distance, config] : found) configs.push_back(std::move(config));
  return configs;
}

void add(std::vector<Config>& configs, const Space& space, const Config& config) {
  const bool known = std::find(configs.begin(), configs.end(), config) != configs.end();
  if (!known && space.why_not(config).empty()) configs.push_back(config);
}

}  // namespace

std::vector<Config> seeds(const Problem& problem, const DeviceInfo& device, const Space& space,
                          const std::string& db) {
  std::vector<Config> configs;
  const auto known = lookup(problem, device, {db}, default_databases(), kernels_of(space, device));
  if (known.ok() && known->rung != Rung::built_in) add(configs, space, known->config);
  const std::size_t most = configs.size() + kSimilar;
  for (const Config& config : winners_nearby(problem, device, db)) {
    if (configs.size() < most) add(configs, space, config);
  }
  for (const Space::Branch& branch : space.branches()) {
    if (branch.why_not.empty()) add(configs, space, branch.variant->built_in(problem, device));
  }
  return configs;
}

}  // namespace rnntune::tuner
