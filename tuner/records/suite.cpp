// SPDX-License-Identifier: Apache-2.0
#include "tuner/records/suite.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

namespace rnntune::tuner {
namespace {

using Json = nlohmann::json;

// Where in a file a reader is, for its error messages.
struct Place {
  const std::string& path;
  std::string entry;  // "problem 3 'ptb_small'", empty at top level

  Error error(const std::string& what) const {
    return {ErrorCode::bad_file, path + ": " + (entry.empty() ? "" : entry + ": ") + what};
  }
};

std::string quoted(const Json& value) {
  return value.is_string() ? "'" + value.get<std::string>() + "'"
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_name(const std::string& text) {
  const auto alphanumeric = [](unsigned char c) { return c < 128 && std::isalnum(c); };
  const auto allowed = [&](char c) {
    return alphanumeric(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
  };
  return !text.empty() && alphanumeric(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), allowed);
}

std::optional<Error> unknown_field(const Json& object, const std::set<std::string>& known,
                                   const Place& place) {
  for (const auto& [key, value] : object.items()) {
    if (!known.contains(key)) {
      std::string list;
      for (const std::string& name : known) list += (list.empty() ? "" : " ") + name;
      return place.error("unknown field '" + key + "', expected one of " + list);
    }
  }
  return std::nullopt;
}

Result<std::string> text_field(const Json& object, const char* field, const Place& place) {
  const auto found = object.find(field);
  if (found == object.end()) return place.error("field '" + std::string(field) + "' is missing");
  if (!found->is_string() || found->get_ref<const std::string&>().empty()) {
    return place.error("field '" + std::string(field) + "': expected a text, got " +
                       quoted(*found));
  }
  return found->get<std::string>();
}

Result<std::string> name_field(const Json& object, const Place& place) {
  Result<std::string> name = text_field(object, "name", place);
  if (name.ok() && !is_name(*name)) {
    return place.error("field 'name': expected letters, digits, '_', '.' or '-', got '" + *name +
                       "'");
  }
  return name;
}

Result<double> weight_field(const Json& object, const Place& place) {
  const auto found = object.find("weight");
  if (found == object.end()) return 1.0;
  const double weight = found->is_number() ? found->get<double>() : -1;
  if (!(weight > 0) || !std::isfinite(weight)) {
    return place.error("field 'weight': expected a positive number, got " + quoted(*found));
  }
  return weight;
}

// One model parameter at one value: the part of a problem string, empty where 0 leaves it out.
struct SweepPoint {
  std::string part;    // "G4/8"
  std::string suffix;  // "_G4-8": names hold no slash
};

Result<SweepPoint> sweep_point(const std::string& key, const Json& value, const Place& place) {
  std::string text;
  if (value.is_number_unsigned()) text = std::to_string(value.get<std::uint64_t>());
  if (value.is_string()) text = value.get<std::string>();
  if (text.empty()) {
    return place.error("field 'sweep." + key + "': expected sizes such as 4 or \"4/8\", got " +
                       quoted(value));
  }
  SweepPoint point{text == "0" ? "" : key + text, "_" + key + text};
  std::replace(point.suffix.begin(), point.suffix.end(), '/', '-');
  return point;
}

// Every combination of the swept values, the last parameter fastest; one empty point for no sweep.
Result<std::vector<SweepPoint>> sweep_points(const Json& object, const Place& place) {
  std::vector<SweepPoint> points{{"", ""}};
  const auto sweep = object.find("sweep");
  if (sweep == object.end()) return points;
  if (!sweep->is_object() || sweep->empty()) {
    return place.error("field 'sweep': expected an object such as {\"G\": [1, 2]}, got " +
                       quoted(*sweep));
  }
  if (auto fault = unknown_field(*sweep, {"G", "N", "P", "R"}, place)) return *fault;
  for (const auto& [key, values] : sweep->items()) {
    if (!values.is_array() || values.empty()) {
      return place.error("field 'sweep." + key + "': expected a list of sizes, got " +
                         quoted(values));
    }
    std::vector<SweepPoint> longer;
    for (const SweepPoint& before : points) {
      for (const Json& value : values) {
        const Result<SweepPoint> point = sweep_point(key, value, place);
        if (!point.ok()) return point.error();
        longer.push_back({before.part + (point->part.empty() ? "" : "," + point->part),
                          before.suffix + point->suffix});
      }
    }
    points = std::move(longer);
  }
  return points;
}

Result<Problem> checked_problem(const std::string& text, const Place& place) {
  Result<Problem> problem = parse_problem(text);
  if (!problem.ok()) return place.error("field 'problem': " + problem.error().message);
  const Status status = check(*problem);
  if (!status.ok())
    return place.error("field 'problem': '" + text + "': " + status.error().message);
  return problem;
}

Status add_problems(const Json& object, Place place, Suite& suite) {
  if (!object.is_object()) return place.error("expected an object, got " + quoted(object));
  const Result<std::string> name = name_field(object, place);
  if (!name.ok()) return name.error();
  place.entry += " '" + *name + "'";
  if (auto fault = unknown_field(object, {"name", "problem", "sweep", "weight"}, place)) {
    return *fault;
  }
  const Result<std::string> text = text_field(object, "problem", place);
  if (!text.ok()) return text.error();
  const Result<double> weight = weight_field(object, place);
  if (!weight.ok()) return weight.error();
  const Result<std::vector<SweepPoint>> points = sweep_points(object, place);
  if (!points.ok()) return points.error();
  for (const SweepPoint& point : *points) {
    const Result<Problem> problem = checked_problem(*text + point.part, place);
    if (!problem.ok()) return problem.error();
    const std::string full_name = *name + point.suffix;
    const bool taken = std::any_of(suite.problems.begin(), suite.problems.end(),
                                   [&](const SuiteProblem& p) { return p.name == full_name; });
    if (taken) return place.error("field 'name': '" + full_name + "' is there twice");
    suite.problems.push_back(
        {full_name, *problem, *weight, point.suffix.empty() ? std::string() : *name});
  }
  return {};
}

Status check_header(const Json& file, const Place& place) {
  if (!file.is_object()) return place.error("expected a JSON object");
  const auto format = file.find("format");
  if (format == file.end() || *format != "rnntune-suite") {
    return place.error("field 'format': expected 'rnntune-suite', got " +
                       (format == file.end() ? "nothing" : quoted(*format)));
  }
  const auto version = file.find("version");
  if (version == file.end() || *version != 1) {
    return place.error("field 'version': expected 1, got " +
                       (version == file.end() ? "nothing" : quoted(*version)));
  }
  if (auto fault = unknown_field(
          file, {"format", "version", "name", "description", "source", "problems"}, place)) {
    return *fault;
  }
  return {};
}

}  // namespace

Result<Suite> parse_suite(std::string_view text, const std::string& path) {
  const Place place{path, ""};
  Json file;
  try {
    file = Json::parse(text);
  } catch (const Json::parse_error& error) {
    return place.error(error.what());
  }
  const Status header = check_header(file, place);
  if (!header.ok()) return header.error();
  Suite suite;
  const Result<std::string> name = name_field(file, place);
  if (!name.ok()) return name.error();
  suite.name = *name;
  for (const auto& [field, target] :
       {std::pair{"description", &suite.description}, std::pair{"source", &suite.source}}) {
    const Result<std::string> value = text_field(file, field, place);
    if (!value.ok()) return value.error();
    *target = *value;
  }
  const auto problems = file.find("problems");
  if (problems == file.end() || !problems->is_array() || problems->empty()) {
    return place.error("field 'problems': expected a list of at least one problem");
  }
  for (std::size_t i = 0; i < problems->size(); ++i) {
    const Status added =
        add_problems((*problems)[i], {path, "problem " + std::to_string(i + 1)}, suite);
    if (!added.ok()) return added.error();
  }
  return suite;
}

Result<Suite> load_suite(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) {
    return Error{ErrorCode::not_found, "cannot read the suite '" + path + "'"};
  }
  std::ostringstream text;
  text << file.rdbuf();
  if (text.str().empty()) {
    return Error{ErrorCode::bad_file, path + ": expected a suite, found nothing to read"};
  }
  return parse_suite(text.str(), path);
}

}  // namespace rnntune::tuner
