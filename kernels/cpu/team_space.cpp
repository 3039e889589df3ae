// SPDX-License-Identifier: Apache-2.0
#include "cpu/team_space.hpp"

namespace rnntune::cpu {
namespace {

std::string split_needs_threads(const Problem& problem, const DeviceInfo&, const Config& config) {
  if (config.get("split") != "batch") return {};
  const std::int64_t threads = config.get_int("threads", 1);
  if (threads == 1) return "one thread has nothing to share";
  if (problem.batch < threads) return "B is below the number of threads";
  return {};
}

}  // namespace

Parameter threads_parameter(const DeviceInfo& device) {
  std::vector<std::string> counts;
  for (int n = 1; n < device.threads; n *= 2) counts.push_back(std::to_string(n));
  counts.push_back(std::to_string(device.threads));
  return {"threads", "threads of the team", counts};
}

Parameter split_parameter() {
  return {"split", "what threads share: hidden units or samples", {"hidden", "batch"}};
}

Constraint split_constraint() { return {"split", split_needs_threads}; }

int guess_threads(const Problem& problem, const DeviceInfo& device) {
  // Not tuned: under a MFLOP a time step, barriers cost more than a second thread gains.
  const double flops = step_flops(problem) / static_cast<double>(3 * problem.time * problem.layers);
  return flops < 1e6 ? 1 : device.threads;
}

}  // namespace rnntune::cpu
