// SPDX-License-Identifier: Apache-2.0
// One evaluation: a config in, a record out. The seam behind which a worker process can do it.
#pragma once

#include "tuner/contender.hpp"
#include "tuner/limits.hpp"

namespace rnntune::tuner {

struct EvaluatePolicy {
  MeasurePolicy measure;
  double timeout_us = 60e6;  // checked between steps
  double floor_us = 0;       // no step can be faster: FLOPs at the machine's peak
};

Record evaluate(const Setting& setting, const Attempt& attempt, const EvaluatePolicy& policy);

// FLOPs of a step at 1.05 times the measured peak of that many threads.
double roofline_floor_us(const Problem& problem, const MachineLimits& limits, int threads);

// The command that repeats the check of a config.
std::string repro_command(const Setting& setting, const Config& config);

}  // namespace rnntune::tuner
