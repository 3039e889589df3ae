// SPDX-License-Identifier: Apache-2.0
// The least time that the measured limits of a machine allow a training step: the one place of this
// formula.
//
// A step is three calls that run one after the other: forward, backward data, backward weights.
// Each does a third of the FLOPs and moves at least
//   recurrent   (forward, backward data)  the recurrent weights of every layer, once per time step,
//               since no step can start before the one before it has ended;
//   streamed    every weight and activation that it must read or write, once:
//               forward           W, x, y, and the cell state that backward needs
//               backward data     W, dy, dx, and the cell state
//               backward weights  x, dW
// and takes at least   max(FLOPs / peak, recurrent / bandwidth + streamed / bandwidth).
// The bound is their sum. Bandwidth is that of the largest measured working set which is no larger
// than the one in question, since a kernel may hold part of it one level further in; for anything
// below a quarter of the smallest measured one there is no limit. Transcendental functions, packing
// and synchronisation are left out, so the bound can be approached but not met.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "reports/records.hpp"
#include "rnntune/problem.hpp"

namespace rnntune::tuner {

struct StepBound {
  double time_us = 0;
  double flops = 0;
  double bytes = 0;
  bool bandwidth_limited = false;  // bandwidth rules in more than half of the bound

  double intensity() const { return bytes > 0 ? flops / bytes : 0; }
};

StepBound step_bound(const Problem& problem, const reports::MachineLimits& limits);

// The limits measured at this thread count, else at the next higher one, which can only make the
// bound shorter; null where there are none.
const reports::MachineLimits* limits_at(std::span<const reports::MachineLimits> limits,
                                        int threads);

}  // namespace rnntune::tuner
