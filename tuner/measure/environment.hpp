// SPDX-License-Identifier: Apache-2.0
// What else a measured time depends on, beside the device.
#pragma once

#include <string>

#include "database/database.hpp"
#include "tuner/measure/measure.hpp"

namespace rnntune::tuner {

// Compiler, library, os, kernel; "timer" where the clock is not the machine's own.
Environment environment(const Clock& clock);
std::string utc_now();  // 2026-11-30T10:00:00Z

}  // namespace rnntune::tuner
