// SPDX-License-Identifier: Apache-2.0
#include "tuner/measure/roofline.hpp"

#include <algorithm>
#include <vector>

namespace rnntune::tuner {
namespace {

constexpr double kElementBytes = 4;

// Of all layers and directions.
struct Traffic {
  double input_weights = 0;
  double cell = 0;  // c of every time step
  double x = 0;     // input of every layer
  double y = 0;     // output of every layer
};

struct LayerWeightBytes {
  double input = 0;
  double recurrent = 0;
};

LayerWeightBytes weight_bytes(const Problem& p, std::int64_t layer) {
  const auto in = static_cast<double>(p.skip && layer == 0 ? 0 : p.layer_input(layer));
  const auto out = static_cast<double>(p.output());
  const auto rows = static_cast<double>(p.gates() * p.hidden);
  const auto groups = static_cast<double>(p.group_count(layer));
  const auto rank = static_cast<double>(p.rank);
  LayerWeightBytes bytes{rows * in / groups, rows * out / groups / static_cast<double>(p.heads)};
  if (p.rank) bytes = {rank * in, rank * (out + rows)};
  if (p.projection) bytes.recurrent += static_cast<double>(p.hidden) * out;
  return {bytes.input * kElementBytes, bytes.recurrent * kElementBytes};
}

// Time for all threads to go once through this many bytes, each through its share.
double pass_us(const ThreadLimits& limits, double bytes) {
  std::vector<Bandwidth> levels = limits.read_bandwidth;
  std::erase_if(levels, [](const Bandwidth& level) { return !(level.gbytes_per_s > 0); });
  std::sort(levels.begin(), levels.end(), [](const Bandwidth& a, const Bandwidth& b) {
    return a.working_set_bytes < b.working_set_bytes;
  });
  const double workers = std::max(limits.threads, 1);
  double time_us = 0;
  double done = 0;
  for (std::size_t i = 0; i < levels.size() && done < bytes; ++i) {
    const double capacity = 2 * workers * static_cast<double>(levels[i].working_set_bytes);
    const double upto = i + 1 == levels.size() ? bytes : std::clamp(capacity, done, bytes);
    time_us += (upto - done) / (levels[i].gbytes_per_s * 1e3);
    done = upto;
  }
  return time_us;
}

Traffic traffic_of(const Problem& p) {
  Traffic traffic;
  const double samples = static_cast<double>(p.time) * static_cast<double>(p.batch);
  const double directions = p.directions;
  for (std::int64_t layer = 0; layer < p.layers; ++layer) {
    traffic.input_weights += weight_bytes(p, layer).input * directions;
    traffic.x += samples * static_cast<double>(p.layer_input(layer)) * kElementBytes;
    traffic.y += samples * static_cast<double>(p.output()) * directions * kElementBytes;
    traffic.cell += samples * static_cast<double>(p.hidden) * directions * kElementBytes;
  }
  return traffic;
}

}  // namespace

StepBound step_bound(const Problem& problem, const ThreadLimits& limits) {
  const Traffic traffic = traffic_of(problem);
  double recurrent_bytes = 0;  // of one pass over all time steps
  double recurrent_us = 0;
  double weights = traffic.input_weights;
  for (std::int64_t layer = 0; layer < problem.layers; ++layer) {
    const double bytes = weight_bytes(problem, layer).recurrent;
    const double passes = static_cast<double>(problem.time) * problem.directions;
    weights += bytes * problem.directions;
    recurrent_bytes += bytes * passes;
    recurrent_us += pass_us(limits, bytes) * passes;
  }
  // Between two uses of a streamed byte a step goes through everything else.
  const double everything = weights + traffic.x + traffic.y + traffic.cell;
  const double us_per_byte = pass_us(limits, everything) / everything;
  const double forward = traffic.input_weights + traffic.x + traffic.y + traffic.cell;
  const double backward_weights = traffic.x + weights;

  StepBound bound;
  bound.flops = step_flops(problem);
  bound.bytes = 2 * recurrent_bytes + 2 * forward + backward_weights;
  const double compute_us = bound.flops / 3 / (limits.fma_peak_f32_gflops * 1e3);
  const double pass = recurrent_us + forward * us_per_byte;
  double bandwidth_ruled_us = 0;
  for (const double bandwidth_us : {pass, pass, backward_weights * us_per_byte}) {
    bound.time_us += std::max(compute_us, bandwidth_us);
    if (bandwidth_us > compute_us) bandwidth_ruled_us += bandwidth_us;
  }
  bound.bandwidth_limited = bandwidth_ruled_us * 2 > bound.time_us;
  return bound;
}

const ThreadLimits* limits_at(std::span<const ThreadLimits> limits, int threads) {
  const ThreadLimits* found = nullptr;
  for (const ThreadLimits& candidate : limits) {
    if (candidate.threads < threads) continue;
    if (!found || candidate.threads < found->threads) found = &candidate;
  }
  return found;
}

}  // namespace rnntune::tuner
