// SPDX-License-Identifier: Apache-2.0
// A config: how a problem is computed, a variant plus its parameters. It never changes the result
// beyond rounding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rnntune/export.h"
#include "rnntune/result.hpp"

namespace rnntune {

struct RNNTUNE_EXPORT Config {
  std::string variant;
  std::vector<std::pair<std::string, std::string>> params;  // in the order of the variant's space

  bool operator==(const Config&) const = default;

  // The value of a parameter; empty, or `otherwise`, where the config has no such parameter.
  std::string_view get(std::string_view name) const;
  std::int64_t get_int(std::string_view name, std::int64_t otherwise = 0) const;
  void set(std::string_view name, std::string value);
};

// 'cell:layout=tbh,chunk=0,threads=2'; a variant without parameters is its bare name. parse is the
// inverse.
RNNTUNE_EXPORT std::string to_string(const Config& config);
RNNTUNE_EXPORT Result<Config> parse_config(std::string_view text);

}  // namespace rnntune
