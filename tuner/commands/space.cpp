// SPDX-License-Identifier: Apache-2.0
// rnntune space: the tree of configs of a problem on a device.
#include "space.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "database/codec.hpp"
#include "tuner/command.hpp"
#include "tuner/options.hpp"

namespace rnntune::tuner {
namespace {

// Valid configs of each variant.
std::map<std::string, std::int64_t> counts(const Space& space) {
  std::map<std::string, std::int64_t> counts;
  space.each([&](const Config& config) { return ++counts[config.variant], true; });
  return counts;
}

Json branch_json(const Space::Branch& branch, std::int64_t count) {
  Json json = {{"variant", branch.variant->name}, {"help", branch.variant->help}};
  if (!branch.why_not.empty()) {
    json["why_not"] = branch.why_not;
    return json;
  }
  json["configs"] = count;
  json["parameters"] = Json::array();
  for (const Parameter& parameter : branch.parameters) {
    json["parameters"].push_back(
        {{"name", parameter.name}, {"help", parameter.help}, {"values", parameter.values}});
  }
  json["constraints"] = Json::array();
  for (const Constraint& rule : branch.variant->constraints) {
    json["constraints"].push_back(rule.name);
  }
  return json;
}

void print_branch(const Space::Branch& branch, std::int64_t count) {
  if (!branch.why_not.empty()) {
    std::printf("  %s: not here: %s\n", branch.variant->name, branch.why_not.c_str());
    return;
  }
  std::printf("  %s: %lld configs; %s\n", branch.variant->name, static_cast<long long>(count),
              branch.variant->help);
  for (const Parameter& parameter : branch.parameters) {
    std::string values;
    for (const std::string& value : parameter.values) values += " " + value;
    std::printf("    %-14s%s  (%s)\n", parameter.name.c_str(), values.c_str(),
                parameter.help.c_str());
  }
  for (const Constraint& rule : branch.variant->constraints) {
    std::printf("    rule: %s\n", rule.name);
  }
}

int space(const Options& options) {
  const auto device = open_device(options);
  Json problems = Json::array();
  for (const NamedProblem& named : load_problems(options)) {
    const Space space(named.problem, device->info());
    auto count = counts(space);
    Json json = {{"name", named.name}, {"problem", to_string(named.problem)}};
    std::int64_t total = 0;
    for (const auto& [variant, configs] : count) total += configs;
    json["configs"] = total;
    json["branches"] = Json::array();
    if (!options.json) {
      std::printf("%s: %s: %lld configs\n", named.name.c_str(), to_string(named.problem).c_str(),
                  static_cast<long long>(total));
    }
    for (const Space::Branch& branch : space.branches()) {
      json["branches"].push_back(branch_json(branch, count[branch.variant->name]));
      if (!options.json) print_branch(branch, count[branch.variant->name]);
    }
    problems.push_back(std::move(json));
  }
  if (options.json) std::printf("%s\n", dump({{"problems", problems}}).c_str());
  return kFine;
}

}  // namespace

extern const Command kSpace;
const Command kSpace{"space", "The configs that a problem has here, as a tree",
                     [](CLI::App& app) -> Run {
                       auto options = std::make_shared<Options>();
                       add_device_options(app, *options);
                       add_problem_options(app, *options);
                       app.add_flag("--json", options->json, "results as JSON");
                       return [=] { return space(*options); };
                     }};

}  // namespace rnntune::tuner
