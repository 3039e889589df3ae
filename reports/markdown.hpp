// SPDX-License-Identifier: Apache-2.0
// The report as Markdown, for a pull request or a repository.
#pragma once

#include <string>

#include "reports/records.hpp"

namespace rnntune::reports {

std::string markdown_page(const Report& report);

}  // namespace rnntune::reports
