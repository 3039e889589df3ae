// SPDX-License-Identifier: Apache-2.0
#include "rnntune/config.hpp"

#include <algorithm>
#include <charconv>

namespace rnntune {

std::string_view Config::get(std::string_view name) const {
  for (const auto& [key, value] : params)
    if (key == name) return value;
  return {};
}

std::int64_t Config::get_int(std::string_view name, std::int64_t otherwise) const {
  const std::string_view text = get(name);
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc{} && end == text.data() + text.size() ? value : otherwise;
}

void Config::set(std::string_view name, std::string value) {
  for (auto& [key, old] : params) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  params.emplace_back(name, std::move(value));
}

std::string to_string(const Config& config) {
  std::string text = config.variant;
  for (const auto& [key, value] : config.params)
    text += (&key == &config.params.front().first ? ":" : ",") + key + "=" + value;
  return text;
}

Result<Config> parse_config(std::string_view text) {
  const auto bad = [&](const std::string& why) {
    return invalid_argument("config '" + std::string(text) + "': " + why +
                            " (expected e.g. 'cell:layout=tbh,threads=2')");
  };
  Config config;
  const std::size_t colon = std::min(text.find(':'), text.size());
  config.variant = text.substr(0, colon);
  if (config.variant.empty()) return bad("the variant is missing");
  for (std::size_t at = colon + 1; at <= text.size() && colon != text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == part.size())
      return bad("cannot read '" + std::string(part) + "'");
    const std::string_view key = part.substr(0, equals);
    if (!config.get(key).empty()) return bad("'" + std::string(key) + "' is given twice");
    config.params.emplace_back(key, part.substr(equals + 1));
    at = end + 1;
  }
  return config;
}

}  // namespace rnntune
