// SPDX-License-Identifier: Apache-2.0
// What the spaces of all CPU variants share: how a team is chosen.
#pragma once

#include <string>

#include "variants.hpp"

namespace rnntune::cpu {

// threads: 1, powers of two, the limit.
Parameter threads_parameter(const DeviceInfo& device);

// split: threads share hidden units or samples; samples only where every thread has one.
Parameter split_parameter();
Constraint split_constraint();

// A fair guess without tuning: one thread, or all of them.
int guess_threads(const Problem& problem, const DeviceInfo& device);

}  // namespace rnntune::cpu
