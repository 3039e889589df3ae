// SPDX-License-Identifier: Apache-2.0
// The lookup ladder: which config the tuning databases have for a problem on a device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rnntune/rnn.hpp"
#include "space.hpp"

namespace rnntune {

// What the ladder asks about the kernels at hand.
struct Kernels {
  std::function<std::string(const Config&)> why_not;      // empty: the config is in the space
  std::function<std::string(const Config&)> kernel_hash;  // of the config's variant; empty: unknown
  std::function<Result<Config>()> built_in;
};

// `space` must outlive what is returned.
inline Kernels kernels_of(const Space& space, const DeviceInfo& device) {
  return {[&space](const Config& config) { return space.why_not(config); },
          [backend = device.backend](const Config& config) -> std::string {
            const Variant* variant = find_variant(backend, config.variant);
            return variant == nullptr ? "" : variant->kernel_hash;
          },
          [&space] { return space.built_in(); }};
}

// `given` are the files that the caller named, `standard` those of default_databases(). The best
// rung over all files wins; within a rung, the smaller distance, then the earlier file, then the
// better entry. Only entries of the objective "step" are asked. A config is used whole or not at
// all, and only if the space of this problem accepts it. Fails only where the built-in choice does.
//
// Files are parsed once and again when they change; the call may be made from any thread.
Result<Explanation> lookup(const Problem& problem, const DeviceInfo& device,
                           const std::vector<std::string>& given,
                           const std::vector<std::string>& standard, const Kernels& kernels);

// How far a config tuned for `b` is from `a`: the largest |log2 ratio| over B, I, H, P and T, where
// T counts a tenth. Infinite where cell, L, D, G, R, N, bias, dtype, or the presence of P, skip,
// variable lengths or dropout differ: such entries never serve.
double shape_distance(const Problem& a, const Problem& b);
inline constexpr double kFarthest = 1;  // a neighbour farther away says too little

// Tells `log` that a lookup fell back or passed something over: one line per problem and device in
// the life of the process, however many plans are made.
void log_once(const Problem& problem, const DeviceInfo& device, const Explanation& explanation,
              const std::function<void(const std::string&)>& log);

}  // namespace rnntune
