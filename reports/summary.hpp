// SPDX-License-Identifier: Apache-2.0
// The summary table as plain text for a terminal, configs last since they are long.
#pragma once

#include <string>

#include "reports/records.hpp"

namespace rnntune::reports {

std::string summary_text(const Report& report);

}  // namespace rnntune::reports
