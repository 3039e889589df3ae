// SPDX-License-Identifier: Apache-2.0
#include "cpu/blas_plan.hpp"

#include <cstring>
#include <limits>

#include "cpu/team_space.hpp"

namespace rnntune::cpu {
namespace {

std::string blas_is_here(const Problem&, const DeviceInfo&, const Config& config) {
  return choose_blas(config.get("blas")).forward == nullptr ? "the library does not load here" : "";
}

std::string products_need_threads(const Problem&, const DeviceInfo&, const Config& config) {
  if (config.get("products") != "library") return {};
  if (config.get_int("threads", 1) == 1) return "one thread has nothing to share";
  if (config.get("split") == "batch") return "samples are shared by a team only";
  return {};
}

constexpr const char* kMixed = "mixed";

std::vector<std::string> blas_values() {
  std::vector<std::string> names;
  for (const Blas& blas : blas_libraries()) names.push_back(blas.name);
  if (find_blas("openblas") != nullptr && find_blas("onednn") != nullptr) names.push_back(kMixed);
  return names;
}

}  // namespace

std::string why_not_blas(const Problem& p, const DeviceInfo&) {
  if (std::string why = why_not_lstm(p); !why.empty()) return why;
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
  return {threads_parameter(device),
          {"blas", "library of the matrix products", blas_values()},
          {"products", "who cuts a product for the threads", {"team", "library"}}};
}

std::vector<Constraint> blas_constraints() {
  return {{"blas", blas_is_here}, {"products", products_need_threads}};
}

std::vector<std::pair<std::string, std::string>> blas_guess(const Problem& problem,
                                                            const DeviceInfo& device) {
  return {{"threads", std::to_string(guess_threads(problem, device))},
          {"blas", blas_values().back()},
          {"products", "team"}};
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
          config.get("products") == "library", choose_blas(config.get("blas"))};
}

BlasPlan::BlasPlan(const Problem& problem, const Elementwise& kernels, const TeamConfig& team)
    : problem_(problem), kernels_(kernels), team_(team), layers_(std::size_t(problem.layers)) {
  const Checked gates = Checked(4) * problem.hidden;
  const Checked sequence = Checked(problem.batch) * problem.hidden * problem.time;
  for (std::int64_t l = 0; l < problem.layers; ++l) {
    Layer& layer = layers_[std::size_t(l)];
    layer.input = problem.layer_input(l);
    layer.weight_ih = memory_.packed.add(gates * layer.input);
    layer.weight_hh = memory_.packed.add(gates * problem.hidden);
    layer.bias = memory_.packed.add(gates);
    layer.y = memory_.reserve.add(l + 1 < problem.layers ? sequence : Checked(0));
  }
  for (Place& place : between_) {
    place = memory_.workspace.add(problem.layers > 1 ? sequence : Checked(0));
  }
  db_ = memory_.workspace.add(gates);
}

Status BlasPlan::pack(const LayerWeights* layers, const PlanBuffers& buffers, Stream) {
  const std::int64_t hidden = problem_.hidden;
  run_team(team_.threads, [&](const Member& member) {
    const Range rows = split(4 * hidden, member.count, member.id, TeamShare::kLine);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      copy_block(layers[l].weight_ih, layer.weight_ih.in(buffers.packed), layer.input,
                 {rows, {0, layer.input}});
      copy_block(layers[l].weight_hh, layer.weight_hh.in(buffers.packed), hidden,
                 {rows, {0, hidden}});
      float* const bias = layer.bias.in(buffers.packed);
      copy_block(layers[l].bias_ih, bias, 4 * hidden, {{0, 1}, rows});
      if (layers[l].bias_hh != nullptr) {
        kernels_.add_bias({1, rows.size()}, layers[l].bias_hh + rows.begin,
                          {bias + rows.begin, 4 * hidden});
      }
    }
  });
  return {};
}

ConstMatrix BlasPlan::input_of(std::int64_t l, const float* x, const float* y,
                               const PlanBuffers& buffers, bool training) const {
  return {l == 0 ? x : output_of(l - 1, y, buffers, training), layers_[std::size_t(l)].input,
          false};
}

const float* BlasPlan::output_of(std::int64_t l, const float* y, const PlanBuffers& buffers,
                                 bool training) const {
  if (l + 1 == problem_.layers) return y;
  return training ? layers_[std::size_t(l)].y.in(buffers.reserve)
                  : between_[std::size_t(l % 2)].in(buffers.workspace);
}

}  // namespace rnntune::cpu
