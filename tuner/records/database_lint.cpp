// SPDX-License-Identifier: Apache-2.0
#include "tuner/records/database_lint.hpp"

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "database/codec.hpp"

namespace rnntune::tuner {
namespace {

using Lines = std::vector<std::string>;

const Json& member(const Json& json, const char* name) {
  static const Json kNone;
  const auto at = json.is_object() ? json.find(name) : json.end();
  return json.is_object() && at != json.end() ? *at : kNone;
}

// Fields that a reader has a default for, and every writer of the format writes.
void lint_fields(const Json& entry, const std::string& place, Lines& lines) {
  const Json written = encode(Entry{}, 0);
  if (!entry.is_object()) return;
  for (const auto& [name, value] : written.items())
    if (name != "against" && name != "tied" && name != "budget_s" && !entry.contains(name))
      lines.push_back(place + "." + name + ": missing");
}

// Where something was seen first; two of the same are a fault of the second.
class Seen {
 public:
  void note(const std::string& what, const std::string& place, Lines& lines) {
    const auto [at, fresh] = places_.emplace(what, place);
    if (!fresh) lines.push_back(place + ": " + what + " is already at " + at->second);
  }

 private:
  std::map<std::string, std::string> places_;
};

std::string text_of(const Json& json) { return json.is_string() ? json.get<std::string>() : ""; }

// The canonical form, so that two spellings of a problem are one.
std::string problem_of(const Json& entry) {
  const std::string text = text_of(member(entry, "problem"));
  const Result<Problem> problem = parse_problem(text);
  return problem ? to_string(*problem) : text;
}

void lint_record(const Json& record, const std::string& place, Seen& devices, Lines& lines) {
  const Json& device = member(record, "device");
  devices.note(
      "device " + text_of(member(device, "backend")) + " " + text_of(member(device, "key")), place,
      lines);
  for (const char* name : {"name", "architecture", "properties"})
    if (member(device, name).is_null()) lines.push_back(place + ".device." + name + ": missing");
  const Json& environments = member(record, "environments");
  if (!environments.is_array()) lines.push_back(place + ".environments: expected an array");
  for (std::size_t i = 0; environments.is_array() && i < environments.size(); ++i) {
    Environment environment;
    if (const std::string why = decode(environments[i], environment); !why.empty())
      lines.push_back(place + ".environments[" + std::to_string(i) + "]" + why);
  }
  Seen problems;
  const Json& entries = member(record, "entries");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string at = place + ".entries[" + std::to_string(i) + "]";
    if (!entries[i].is_object()) continue;
    lint_fields(entries[i], at, lines);
    problems.note(text_of(member(entries[i], "objective")) + " of " + problem_of(entries[i]), at,
                  lines);
  }
}

Lines faults_of(const Database& database) {
  Lines lines;
  const auto add = [&](const std::vector<Skipped>& skipped) {
    for (const Skipped& s : skipped) lines.push_back(s.place + ": " + s.reason);
  };
  add(database.skipped);
  for (const DeviceRecord& record : database.devices) add(record.skipped);
  return lines;
}

}  // namespace

Result<std::vector<std::string>> lint_database(const std::string& path) {
  const Result<Database> database = read_database(path);
  if (!database && database.error().code != ErrorCode::bad_file) return database.error();
  if (!database) return Lines{database.error().message};
  Lines lines = faults_of(*database);
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Result<Json> json = parse_json(text, path);
  if (!json) return Lines{json.error().message};
  Seen devices;
  const Json& records = member(*json, "devices");
  for (std::size_t i = 0; i < records.size(); ++i)
    if (member(records[i], "entries").is_array())
      lint_record(records[i], "devices[" + std::to_string(i) + "]", devices, lines);
  for (std::string& line : lines) line = path + ": " + line;
  return lines;
}

}  // namespace rnntune::tuner
