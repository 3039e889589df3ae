// SPDX-License-Identifier: Apache-2.0
// The JSON form of the records that rnntune's files share. Each type lists its fields once, in the
// order of docs/formats.md, and both directions walk that list. Nothing here throws; a reader's
// sentence names the field, what was expected and what came.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "database/database.hpp"

namespace rnntune {

using Json = nlohmann::ordered_json;

// Parses a whole text; the error names `path`, line and column.
Result<Json> parse_json(std::string_view text, const std::string& path);

// Text on one line; bytes that are no UTF-8 are replaced, never thrown about.
std::string dump(const Json& json);

Json encode(const Config& config);
Json encode(const TimeUs& time);
Json encode(const Validation& validation);
Json encode(const Against& against);
Json encode(const DeviceInfo& device);  // the fingerprint
Json encode(const Environment& environment);

// Each returns why not, as ".time_us.median: expected a number, got null", or an empty string.
std::string decode(const Json& json, Config& config);
std::string decode(const Json& json, TimeUs& time);
std::string decode(const Json& json, Validation& validation);
std::string decode(const Json& json, Against& against);
std::string decode(const Json& json, DeviceInfo& device);
std::string decode(const Json& json, Environment& environment);

// An entry without its environment: the file holds an index, and the caller resolves it.
Json encode(const Entry& entry, std::size_t environment);
std::string decode(const Json& json, Entry& entry, std::size_t& environment);

}  // namespace rnntune
