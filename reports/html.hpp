// SPDX-License-Identifier: Apache-2.0
// The report as one self-contained HTML page: no network, and whatever a file names its problems,
// no script but ours.
#pragma once

#include <string>

#include "reports/records.hpp"

namespace rnntune::reports {

std::string html_page(const Report& report);

// What the page's charts are drawn from, as JSON that can stand inside a script element.
std::string page_data(const Report& report);

}  // namespace rnntune::reports
