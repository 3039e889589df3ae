// SPDX-License-Identifier: Apache-2.0
// What else a measured time depends on, beside the device.
#pragma once

#include <string>

#include "database.hpp"

namespace rnntune::tuner {

Environment environment();  // compiler, library, os, kernel
std::string utc_now();      // 2026-11-30T10:00:00Z

}  // namespace rnntune::tuner
