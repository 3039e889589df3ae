// SPDX-License-Identifier: Apache-2.0
// What is wrong with a tuning database, beyond what makes a reader pass an entry over.
#pragma once

#include <string>
#include <vector>

#include "rnntune/result.hpp"

namespace rnntune::tuner {

// One line for each fault: file, place in it, reason. A file that is no database is one fault; a
// file that is not there is an error.
Result<std::vector<std::string>> lint_database(const std::string& path);

}  // namespace rnntune::tuner
