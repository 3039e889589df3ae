// SPDX-License-Identifier: Apache-2.0
// Activity records by a given table of CUPTI's functions: the library's, or a test's own.
#pragma once

#include "device/cupti.hpp"
#include "tuner/gpu/activity.hpp"

namespace rnntune::tuner {

Result<std::unique_ptr<ActivityTrace>> open_activity_trace(const CuptiActivity& cupti,
                                                           GraphDetail detail, const Probe& probe);

}  // namespace rnntune::tuner
