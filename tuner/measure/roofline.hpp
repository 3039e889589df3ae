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
// The bound is their sum. Each measured working set stands for a memory level of twice its size; of
// the bytes that a thread goes through, as many as fit come at the bandwidth of the innermost
// level, the next at that of the next one, since a kernel may hold them there. Transcendental
// functions, packing and synchronisation are left out: the bound can be approached but not met.
#pragma once

#include <span>

#include "rnntune/problem.hpp"
#include "tuner/measure/limits.hpp"

namespace rnntune::tuner {

struct StepBound {
  double time_us = 0;
  double flops = 0;
  double bytes = 0;
  bool bandwidth_limited = false;  // bandwidth rules in more than half of the bound

  double intensity() const { return bytes > 0 ? flops / bytes : 0; }
};

StepBound step_bound(const Problem& problem, const ThreadLimits& limits);

// The limits measured at this thread count, else at the next higher one, which can only make the
// bound shorter; null where there are none.
const ThreadLimits* limits_at(std::span<const ThreadLimits> limits, int threads);

}  // namespace rnntune::tuner
