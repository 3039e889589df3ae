// SPDX-License-Identifier: Apache-2.0
// The names that open_device knows, for a tool that has devices of its own beside them.
#pragma once

#include <string>
#include <string_view>

namespace rnntune {

std::string device_names();  // for people: "cpu, cuda, cuda:N"
bool is_device_name(std::string_view name);

}  // namespace rnntune
