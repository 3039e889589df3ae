// SPDX-License-Identifier: Apache-2.0
#include "cpu/blas_plan.hpp"

#include <cstring>
#include <limits>

namespace rnntune::cpu {
namespace {

std::string blas_is_here(const Problem&, const DeviceInfo&, const Config& config) {
  return choose_blas(config.get("blas")).forward == nullptr ? "the library does not load here" : "";
}

constexpr const char* kMixed = "mixed";

}  // namespace

std::string why_not_blas(const Problem& p, const DeviceInfo&) {
  if (p.cell != Cell::lstm) return std::string("computes lstm, not ") + to_string(p.cell);
  if (p.dtype != Dtype::f32) return std::string("computes f32, not ") + to_string(p.dtype);
  if (p.projection || p.rank || !p.groups.empty() || p.heads != 1) {
    return "computes no projection, groups, rank or heads";
  }
  if (p.directions != 1) return "computes one direction";
  if (p.skip || p.variable_lengths || p.dropout > 0) {
    return "computes no skip input, variable lengths or dropout";
  }
  if (best_blas() == nullptr) {
    std::string why = "needs a BLAS";
    for (const std::string& absent : absent_blas()) why += "; " + absent;
    return why;
  }
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (p.time * p.batch > kMost || 4 * p.hidden > kMost || p.input > kMost) {
    return "T*B, I and 4*H must fit the 31 bits of a BLAS integer";
  }
  return {};
}

std::vector<Parameter> blas_parameters(const DeviceInfo& device) {
  std::vector<std::string> threads;
  for (int n = 1; n < device.threads; n *= 2) threads.push_back(std::to_string(n));
  threads.push_back(std::to_string(device.threads));
  std::vector<std::string> libraries;
  for (const Blas& blas : blas_libraries()) libraries.push_back(blas.name);
  if (find_blas("openblas") != nullptr && find_blas("onednn") != nullptr) {
    libraries.push_back(kMixed);
  }
  return {{"threads", "threads of the team", threads},
          {"blas", "library of the matrix products", libraries}};
}

std::vector<Constraint> blas_constraints() { return {{"blas", blas_is_here}}; }

std::vector<std::pair<std::string, std::string>> blas_guess(const Problem& problem,
                                                            const DeviceInfo& device) {
  // Below a MFLOP a time step the barriers cost more than a second thread gains.
  const double flops = step_flops(problem) / double(3 * problem.time * problem.layers);
  const bool one = flops < 1e6 || device.threads == 1;
  const std::vector<Parameter> parameters = blas_parameters(device);
  return {{"threads", std::to_string(one ? 1 : device.threads)},
          {"blas", parameters.back().values.back()}};
}

BlasChoice choose_blas(std::string_view value) {
  const Blas* const openblas = find_blas("openblas");
  const Blas* const onednn = find_blas("onednn");
  if (value == kMixed && openblas != nullptr && onednn != nullptr) {
    return {openblas, onednn, openblas};
  }
  const Blas* const one = find_blas(value);
  return {one, one, one};
}

void copy_block(const float* from, float* to, std::int64_t ld, Block block) {
  if (block.empty()) return;
  const std::size_t bytes = std::size_t(block.cols.size()) * sizeof(float);
  for (std::int64_t r = block.rows.begin; r < block.rows.end; ++r) {
    const std::int64_t at = r * ld + block.cols.begin;
    if (from == nullptr) {
      std::memset(to + at, 0, bytes);
    } else {
      std::memcpy(to + at, from + at, bytes);
    }
  }
}

TeamConfig TeamConfig::from(const Config& config) {
  return {int(config.get_int("threads", 1)), config.get("split") == "batch",
          choose_blas(config.get("blas"))};
}

}  // namespace rnntune::cpu
