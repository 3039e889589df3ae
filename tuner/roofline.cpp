// SPDX-License-Identifier: Apache-2.0
#include "tuner/roofline.hpp"

#include <algorithm>
#include <limits>

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

double bandwidth_bytes_per_us(const reports::MachineLimits& limits, double working_set) {
  const reports::Bandwidth* best = nullptr;
  const reports::Bandwidth* smallest = nullptr;
  for (const reports::Bandwidth& point : limits.read_bandwidth) {
    if (!(point.gbytes_per_s > 0)) continue;
    const auto size = static_cast<double>(point.working_set_bytes);
    if (!smallest || point.working_set_bytes < smallest->working_set_bytes) smallest = &point;
    if (size <= working_set && (!best || point.working_set_bytes > best->working_set_bytes)) {
      best = &point;
    }
  }
  if (!best && smallest && working_set >= static_cast<double>(smallest->working_set_bytes) / 4) {
    best = smallest;
  }
  return best ? best->gbytes_per_s * 1e3 : std::numeric_limits<double>::infinity();
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

StepBound step_bound(const Problem& problem, const reports::MachineLimits& limits) {
  const Traffic traffic = traffic_of(problem);
  const double workers = std::max(limits.threads, 1);
  double recurrent_bytes = 0;  // of one pass over all time steps
  double recurrent_us = 0;
  double weights = traffic.input_weights;
  for (std::int64_t layer = 0; layer < problem.layers; ++layer) {
    const double bytes = weight_bytes(problem, layer).recurrent;
    const double passes = static_cast<double>(problem.time) * problem.directions;
    weights += bytes * problem.directions;
    recurrent_bytes += bytes * passes;
    recurrent_us += bytes * passes / bandwidth_bytes_per_us(limits, bytes / workers);
  }
  const double everything = weights + traffic.x + traffic.y + traffic.cell;
  const double streamed_rate = bandwidth_bytes_per_us(limits, everything / workers);
  const double forward = traffic.input_weights + traffic.x + traffic.y + traffic.cell;
  const double backward_weights = traffic.x + weights;

  StepBound bound;
  bound.flops = step_flops(problem);
  bound.bytes = 2 * recurrent_bytes + 2 * forward + backward_weights;
  const double compute_us = bound.flops / 3 / (limits.peak_gflops * 1e3);
  double bandwidth_ruled_us = 0;
  for (const double bandwidth_us :
       {recurrent_us + forward / streamed_rate, recurrent_us + forward / streamed_rate,
        backward_weights / streamed_rate}) {
    bound.time_us += std::max(compute_us, bandwidth_us);
    if (bandwidth_us > compute_us) bandwidth_ruled_us += bandwidth_us;
  }
  bound.bandwidth_limited = bandwidth_ruled_us * 2 > bound.time_us;
  return bound;
}

const reports::MachineLimits* limits_at(std::span<const reports::MachineLimits> limits,
                                        int threads) {
  const reports::MachineLimits* found = nullptr;
  for (const reports::MachineLimits& candidate : limits) {
    if (candidate.threads < threads) continue;
    if (!found || candidate.threads < found->threads) found = &candidate;
  }
  return found;
}

}  // namespace rnntune::tuner
