// SPDX-License-Identifier: Apache-2.0
#include "database/codec.hpp"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace rnntune {
namespace {

template <class T, class Plain>
concept Like = std::same_as<std::remove_const_t<T>, Plain>;

// A number that may be unknown: NaN here; null in the file, or absent where the field may be.
template <class Double>
struct OrNull {
  Double& number;
};
template <class Double>
OrNull(Double&) -> OrNull<Double>;

// The field lists. `c` is a Writer or a Reader; `must` fields are refused when absent, `may` fields
// keep their default.
void fields(auto& c, Like<TimeUs> auto& t) {
  c.must("median", t.median);
  c.may("low", OrNull{t.low});
  c.may("high", OrNull{t.high});
  c.may("samples", t.samples);
  c.may("noise", OrNull{t.noise});
  c.may("stop", t.stop);
}

void fields(auto& c, Like<Validation> auto& v) {
  c.must("reference", v.reference);
  c.must("error", OrNull{v.error});
  c.must("bound", v.bound);
  c.may("tensor", v.tensor);
}

void fields(auto& c, Like<Ratio> auto& r) {
  c.must("median", r.median);
  c.must("low", r.low);
  c.must("high", r.high);
}

void fields(auto& c, Like<Against> auto& a) {
  c.must("opponent", a.opponent);
  c.may("version", a.version);
  c.may("algorithm", a.algorithm);
  c.must("time_us", a.time_us);
  c.must("ratio", a.ratio);
}

void fields(auto& c, Like<Config> auto& config) {
  c.must("variant", config.variant);
  c.may("params", config.params);
}

void fields(auto& c, Like<DeviceInfo> auto& d) {
  c.must("backend", d.backend);
  c.may("name", d.name);
  c.may("architecture", d.architecture);
  c.must("key", d.key);
  c.may("properties", d.properties);
}

void fields(auto& c, Like<Entry> auto& e, auto& environment) {
  c.must("problem", e.problem);
  c.may("objective", e.objective);
  c.must("config", e.config);
  c.may("kernel_hash", e.kernel_hash);
  c.must("time_us", e.time_us);
  c.may("workspace_bytes", e.workspace_bytes);
  c.may("reserve_bytes", e.reserve_bytes);
  c.may("packed_bytes", e.packed_bytes);
  c.must("validation", e.validation);
  c.may("against", e.against);
  c.may("tied", e.tied);
  c.may("environment", environment);
  c.may("policy", e.policy);
  c.may("seed", e.seed);
  c.may("budget_s", e.budget_s);
  c.may("evaluations", e.evaluations);
  c.may("complete", e.complete);
  c.may("time", e.time);
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

template <class T>
concept Primitive = std::same_as<T, std::string> || std::same_as<T, double> ||
    std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t> || std::same_as<T, bool>;

Json value(const Primitive auto& v) { return v; }
Json value(const Problem& problem) { return to_string(problem); }
Json value(const OrNull<const double>& number) { return number.number; }

Json value(const Pairs& pairs) {
  Json json = Json::object();
  for (const auto& [name, text] : pairs) json[name] = text;
  return json;
}

template <class T>
Json value(const T& record);

template <class T>
Json value(const std::vector<T>& list) {
  Json json = Json::array();
  for (const T& item : list) json.push_back(value(item));
  return json;
}

struct Writer {
  Json json = Json::object();
  void must(const char* name, const auto& v) { json[name] = value(v); }
  void may(const char* name, const auto& v) { must(name, v); }
  void may(const char* name, const OrNull<const double>& v) {
    if (!std::isnan(v.number)) must(name, v);
  }
};

template <class T>
Json value(const T& record) {
  Writer writer;
  fields(writer, record);
  return std::move(writer.json);
}

std::string shown(const Json& json) {
  std::string text = dump(json);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return std::string(json.type_name()) + (json.is_null() ? "" : " " + text);
}

std::string unexpected(const char* expected, const Json& json) {
  return std::string(": expected ") + expected + ", got " + shown(json);
}

std::string read(const Json& json, std::string& out) {
  if (!json.is_string()) return unexpected("a string", json);
  out = json.get<std::string>();
  return {};
}

std::string read(const Json& json, double& out) {
  if (!json.is_number()) return unexpected("a number", json);
  out = json.get<double>();
  return {};
}

std::string read(const Json& json, OrNull<double> out) {
  if (!json.is_null()) return read(json, out.number);
  out.number = std::numeric_limits<double>::quiet_NaN();
  return {};
}

std::string read(const Json& json, bool& out) {
  if (!json.is_boolean()) return unexpected("true or false", json);
  out = json.get<bool>();
  return {};
}

std::string read(const Json& json, std::uint64_t& out) {
  if (!json.is_number_unsigned()) return unexpected("an integer of at least 0", json);
  out = json.get<std::uint64_t>();
  return {};
}

std::string read(const Json& json, std::int64_t& out) {
  if (!json.is_number_integer()) return unexpected("an integer", json);
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
    return unexpected("an integer of at most 63 bits", json);
  out = json.get<std::int64_t>();
  return {};
}

std::string read(const Json& json, Problem& out) {
  std::string text;
  if (std::string why = read(json, text); !why.empty()) return why;
  Result<Problem> problem = parse_problem(text);
  if (!problem) return ": " + problem.error().message;
  out = std::move(*problem);
  return {};
}

std::string read(const Json& json, Pairs& out) {
  if (!json.is_object()) return unexpected("an object of strings", json);
  out.clear();
  for (const auto& [name, item] : json.items()) {
    if (!item.is_string()) return "." + name + unexpected("a string", item);
    out.emplace_back(name, item.template get<std::string>());
  }
  return {};
}

template <class T>
std::string read(const Json& json, T& record);

template <class T>
std::string read(const Json& json, std::vector<T>& out) {
  if (!json.is_array()) return unexpected("an array", json);
  out.assign(json.size(), {});
  for (std::size_t i = 0; i < json.size(); ++i)
    if (const std::string why = read(json[i], out[i]); !why.empty())
      return "[" + std::to_string(i) + "]" + why;
  return {};
}

// Stops at the first field that does not fit.
struct Reader {
  const Json& json;
  std::string why;

  void field(const char* name, auto&& out, bool required) {
    if (!why.empty()) return;
    const auto at = json.find(name);
    if (at != json.end())
      why = read(*at, out);
    else if (required)
      why = ": missing";
    if (!why.empty()) why = "." + std::string(name) + why;
  }
  void must(const char* name, auto&& out) { field(name, out, true); }
  void may(const char* name, auto&& out) { field(name, out, false); }
  void may(const char* name, OrNull<double> out) {
    out.number = std::numeric_limits<double>::quiet_NaN();
    field(name, out, false);
  }
};

template <class T>
std::string read(const Json& json, T& record) {
  if (!json.is_object()) return unexpected("an object", json);
  Reader reader{json, {}};
  fields(reader, record);
  return reader.why;
}

// Finds where a text stops being JSON; the parser itself only says that it does.
struct ErrorPlace : nlohmann::json_sax<Json> {
  std::size_t position = 0;
  std::string what;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception& error) override {
    position = at;
    what = error.what();
    return false;
  }
};

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& path) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_discarded()) return json;
  ErrorPlace place;
  Json::sax_parse(text, &place);
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..."
  const std::size_t sentence = place.what.find("] ");
  if (sentence != std::string::npos) place.what.erase(0, sentence + 2);
  return Error{ErrorCode::bad_file, path + ": not valid JSON at byte " +
                                        std::to_string(std::min(place.position, text.size())) +
                                        " of " + std::to_string(text.size()) + ": " + place.what};
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json encode(const Config& config) { return value(config); }
Json encode(const TimeUs& time) { return value(time); }
Json encode(const Validation& validation) { return value(validation); }
Json encode(const Against& against) { return value(against); }
Json encode(const DeviceInfo& device) { return value(device); }
Json encode(const Environment& environment) {
  return value(Pairs(environment.begin(), environment.end()));
}

std::string decode(const Json& json, Config& config) { return read(json, config); }
std::string decode(const Json& json, TimeUs& time) { return read(json, time); }
std::string decode(const Json& json, Validation& validation) { return read(json, validation); }
std::string decode(const Json& json, Against& against) { return read(json, against); }
std::string decode(const Json& json, DeviceInfo& device) { return read(json, device); }
std::string decode(const Json& json, Environment& environment) {
  Pairs pairs;
  std::string why = read(json, pairs);
  environment = Environment(pairs.begin(), pairs.end());
  return why;
}

Json encode(const Entry& entry, std::size_t environment) {
  Writer writer;
  fields(writer, entry, environment);
  return std::move(writer.json);
}

std::string decode(const Json& json, Entry& entry, std::size_t& environment) {
  if (!json.is_object()) return unexpected("an object", json);
  Reader reader{json, {}};
  fields(reader, entry, environment);
  return reader.why;
}

}  // namespace rnntune
