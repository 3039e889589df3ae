// SPDX-License-Identifier: Apache-2.0
// An inspection as tables for a terminal of 100 columns, and as JSON (docs/formats.md).
#pragma once

#include <string>

#include "database/codec.hpp"
#include "tuner/inspect/inspect.hpp"

namespace rnntune::tuner {

// `gpu_text` says in one line which GPU it is.
std::string to_text(const Inspection& found, const std::string& gpu_text);
Json to_json(const Inspection& found);

std::string to_text(const InspectedPlan& plan, const std::string& device_text);
Json to_json(const InspectedPlan& plan);

// Resources of a kernel for one architecture, or why it did not compile.
Json to_json(const cuda::Compiled& row);

}  // namespace rnntune::tuner
