// SPDX-License-Identifier: Apache-2.0
// One evaluation: a config in, a record out. The seam behind which a worker process can do it.
#pragma once

#include "tuner/contenders/contender.hpp"
#include "tuner/measure/limits.hpp"

namespace rnntune::tuner {

struct EvaluatePolicy {
  MeasurePolicy measure;
  double timeout_us = 60e6;  // checked between steps
  // FLOPs at the measured peak: the outputs of a faster step are looked at once more.
  double roofline_us = 0;
  // FLOPs at what no such CPU can do: a faster step is untrusted.
  double impossible_us = 0;
};

Record evaluate(const Setting& setting, const Attempt& attempt, const EvaluatePolicy& policy);

// FLOPs of a step at 1.05 times the measured peak of that many threads.
double roofline_us(const Problem& problem, const MachineLimits& limits, int threads);

// FLOPs of a step at the most that clock, vector width and multiply-add units of any CPU with the
// device's instruction sets could do. 0 for another device.
double impossible_us(const Problem& problem, const DeviceInfo& device);

// The command that repeats the check of a config.
std::string repro_command(const Setting& setting, const Config& config);

}  // namespace rnntune::tuner
