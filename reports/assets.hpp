// SPDX-License-Identifier: Apache-2.0
// Files embedded in the binary by tools/embed_assets.py: the page's own text, and Vega.
#pragma once

#include <span>
#include <string_view>

namespace rnntune::reports {

struct Asset {
  std::string_view name;
  std::span<const std::string_view> pieces;
};

std::span<const Asset> assets();

}  // namespace rnntune::reports
