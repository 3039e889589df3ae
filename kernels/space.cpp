// SPDX-License-Identifier: Apache-2.0
#include "space.hpp"

#include <algorithm>

namespace rnntune {
namespace {

std::string broken_constraint(const Variant& variant, const Problem& problem,
                              const DeviceInfo& device, const Config& config) {
  for (const Constraint& constraint : variant.constraints) {
    std::string why = constraint.why_not(problem, device, config);
    if (!why.empty()) return std::string(constraint.name) + ": " + why;
  }
  return {};
}

std::string listed(const Parameter& parameter) {
  std::string text;
  for (const std::string& value : parameter.values) text += (text.empty() ? "" : ", ") + value;
  return text;
}

// Why the config's parameters are not those of the branch, value by value.
std::string mismatch(const Space::Branch& branch, const Config& config) {
  for (const auto& [key, value] : config.params) {
    const auto known = std::any_of(branch.parameters.begin(), branch.parameters.end(),
                                   [&key = key](const Parameter& p) { return p.name == key; });
    if (!known) return "variant '" + config.variant + "' has no parameter '" + key + "'";
  }
  for (const Parameter& parameter : branch.parameters) {
    const std::string_view value = config.get(parameter.name);
    if (value.empty()) return "parameter '" + parameter.name + "' is missing";
    if (std::find(parameter.values.begin(), parameter.values.end(), value) ==
        parameter.values.end())
      return "parameter '" + parameter.name + "' = " + std::string(value) + " is not one of " +
             listed(parameter);
  }
  return {};
}

}  // namespace

Space::Space(const Problem& problem, const DeviceInfo& device)
    : problem_(problem), device_(device) {
  for (const Variant* variant : variants()) {
    if (!runs_on(*variant, device.backend)) continue;
    Branch branch{variant, variant->why_not(problem, device), {}};
    if (branch.why_not.empty()) branch.parameters = variant->parameters(problem, device);
    branches_.push_back(std::move(branch));
  }
}

std::string Space::why_not(const Config& config) const {
  for (const Branch& branch : branches_) {
    if (config.variant != branch.variant->name) continue;
    if (!branch.why_not.empty()) return branch.why_not;
    if (std::string why = mismatch(branch, config); !why.empty()) return why;
    return broken_constraint(*branch.variant, problem_, device_, config);
  }
  return "no variant '" + config.variant + "' on a " + device_.backend + " device";
}

void Space::each(const std::function<bool(const Config&)>& visit) const {
  for (const Branch& branch : branches_) {
    if (!branch.why_not.empty()) continue;
    // An odometer over the branch's values, last parameter fastest.
    std::vector<std::size_t> digits(branch.parameters.size(), 0);
    for (bool more = true; more;) {
      Config config{branch.variant->name, {}};
      for (std::size_t i = 0; i < digits.size(); ++i)
        config.params.emplace_back(branch.parameters[i].name,
                                   branch.parameters[i].values[digits[i]]);
      if (broken_constraint(*branch.variant, problem_, device_, config).empty() && !visit(config))
        return;
      more = false;
      for (std::size_t i = digits.size(); i-- > 0 && !more;) {
        more = ++digits[i] < branch.parameters[i].values.size();
        if (!more) digits[i] = 0;
      }
    }
  }
}

std::int64_t Space::count() const {
  std::int64_t n = 0;
  each([&](const Config&) { return ++n, true; });
  return n;
}

Result<Config> Space::built_in() const {
  std::string reasons;
  for (const Branch& branch : branches_) {
    if (branch.why_not.empty()) return branch.variant->built_in(problem_, device_);
    reasons += "; " + std::string(branch.variant->name) + ": " + branch.why_not;
  }
  return unsupported("no variant on a " + device_.backend + " device computes " +
                     to_string(problem_) + reasons);
}

}  // namespace rnntune
