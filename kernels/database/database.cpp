// SPDX-License-Identifier: Apache-2.0
#include "database/database.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "database/codec.hpp"

namespace rnntune {
namespace {

constexpr const char* kFormat = "rnntune-database";
constexpr std::uint64_t kVersion = 1;

Error bad_file(const std::string& path, const std::string& why) {
  return {ErrorCode::bad_file, path + ": " + why};
}

Result<std::string> read_file(const std::string& path) {
  if (path.empty()) return Error{ErrorCode::not_found, "database: the path is empty"};
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) {
    const bool absent = errno == ENOENT || errno == ENOTDIR;
    return Error{absent ? ErrorCode::not_found : ErrorCode::bad_file,
                 path + ": " + std::strerror(errno)};
  }
  struct stat status {};
  std::string text;
  std::string why;
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    why = "not a regular file";
  } else {
    text.resize(static_cast<std::size_t>(status.st_size));
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t got = ::read(file, text.data() + done, text.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) why = std::strerror(errno);
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    text.resize(done);
  }
  ::close(file);
  if (!why.empty()) return bad_file(path, why);
  return text;
}

std::string why_no_header(const Json& json) {
  if (!json.is_object()) return "expected an object, got " + std::string(json.type_name());
  const auto format = json.find("format");
  if (format == json.end() || *format != kFormat)
    return std::string("format: expected \"") + kFormat + "\", got " +
           (format == json.end() ? "nothing" : dump(*format));
  const auto version = json.find("version");
  if (version == json.end() || !version->is_number_unsigned() || *version == 0)
    return "version: expected an integer of at least 1, got " +
           (version == json.end() ? "nothing" : dump(*version));
  if (version->get<std::uint64_t>() > kVersion)
    return "version " + dump(*version) + " is newer than this rnntune reads (" +
           std::to_string(kVersion) + "); update rnntune";
  const auto devices = json.find("devices");
  if (devices == json.end() || !devices->is_array())
    return "devices: expected an array, got " +
           std::string(devices == json.end() ? "nothing" : devices->type_name());
  return {};
}

// ".time_us.median: missing" after a place reads as one path; a leading ": " is dropped.
std::string sentence(std::string why) {
  why.erase(0, why.find_first_not_of(".: "));
  return why;
}

const Json& member(const Json& json, const char* name) {
  static const Json kNone;
  const auto at = json.find(name);
  return at == json.end() ? kNone : *at;
}

// The environments of a device; one that is damaged is empty, and so are the entries' that use it.
std::vector<Environment> read_environments(const Json& json) {
  std::vector<Environment> environments(json.is_array() ? json.size() : 0);
  for (std::size_t i = 0; i < environments.size(); ++i)
    if (!decode(json[i], environments[i]).empty()) environments[i].clear();
  return environments;
}

void read_entry(const Json& json, const std::string& place,
                const std::vector<Environment>& environments, DeviceRecord& record) {
  Entry entry;
  std::size_t environment = 0;
  std::string why = sentence(decode(json, entry, environment));
  const bool known = environment < environments.size();
  if (why.empty() && !known && json.contains("environment"))
    why = "environment: there are " + std::to_string(environments.size()) + ", got index " +
          std::to_string(environment);
  if (known) entry.environment = environments[environment];
  if (why.empty())
    if (const Status status = check_entry(entry); !status) why = status.error().message;
  if (why.empty()) {
    record.entries.push_back(std::move(entry));
    return;
  }
  Skipped skipped{place, std::move(why), dump(json), {}};
  if (json.is_object() && json.contains("environment") && known) {
    Json rest = json;
    rest.erase("environment");
    skipped.text = dump(rest);
    skipped.environment = std::move(entry.environment);
  }
  record.skipped.push_back(std::move(skipped));
}

void read_record(const Json& json, const std::string& place, Database& database) {
  DeviceRecord record;
  std::string why;
  if (!json.is_object()) {
    why = "expected an object, got " + std::string(json.type_name());
  } else {
    why = decode(member(json, "device"), record.device);
    if (!why.empty()) why = "device" + why;
    if (why.empty() && (record.device.backend.empty() || record.device.key.empty()))
      why = "device: backend and key must not be empty";
    if (why.empty() && !member(json, "entries").is_array())
      why = "entries: expected an array, got " + std::string(member(json, "entries").type_name());
  }
  if (!why.empty()) {
    database.skipped.push_back({place, why, dump(json), {}});
    return;
  }
  // A device that a hand-made file lists twice is one device.
  DeviceRecord* known = find_device(database, record.device);
  if (known == nullptr) known = &database.devices.emplace_back(std::move(record));
  const std::vector<Environment> environments = read_environments(member(json, "environments"));
  const Json& entries = member(json, "entries");
  for (std::size_t i = 0; i < entries.size(); ++i)
    read_entry(entries[i], place + ".entries[" + std::to_string(i) + "]", environments, *known);
}

// Lines of a JSON array, one item each.
void append_lines(std::string& text, const std::vector<std::string>& items, const char* indent) {
  for (std::size_t i = 0; i < items.size(); ++i)
    text += (i ? ",\n" : "\n") + std::string(indent) + items[i];
  text += "]";
}

std::string write_record(const DeviceRecord& record) {
  std::set<Environment> distinct;
  for (const Entry& entry : record.entries) distinct.insert(entry.environment);
  for (const Skipped& skipped : record.skipped)
    if (skipped.environment) distinct.insert(*skipped.environment);
  const auto index = [&](const Environment& e) {
    return static_cast<std::size_t>(std::distance(distinct.begin(), distinct.find(e)));
  };
  std::vector<std::string> environments;
  for (const Environment& e : distinct) environments.push_back(dump(encode(e)));

  std::vector<std::tuple<std::string, std::string, std::string>> sorted;
  for (const Entry& entry : record.entries)
    sorted.emplace_back(to_string(entry.problem), entry.objective,
                        dump(encode(entry, index(entry.environment))));
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> entries;
  for (auto& [problem, objective, line] : sorted) entries.push_back(std::move(line));
  std::vector<std::string> passed;
  for (const Skipped& skipped : record.skipped) {
    Json json = Json::parse(skipped.text, nullptr, false);
    if (skipped.environment) json["environment"] = index(*skipped.environment);
    passed.push_back(dump(json));
  }
  std::sort(passed.begin(), passed.end());
  entries.insert(entries.end(), passed.begin(), passed.end());

  std::string text = "{\"device\":" + dump(encode(record.device)) + ",\n  \"environments\":[";
  append_lines(text, environments, "   ");
  text += ",\n  \"entries\":[";
  append_lines(text, entries, "   ");
  return text + "}";
}

}  // namespace

Result<Database> parse_database(std::string_view text, const std::string& path) {
  if (text.empty()) return bad_file(path, "the file is empty");
  const Result<Json> json = parse_json(text, path);
  if (!json) return json.error();
  if (const std::string why = why_no_header(*json); !why.empty()) return bad_file(path, why);
  Database database;
  const Json& devices = member(*json, "devices");
  for (std::size_t i = 0; i < devices.size(); ++i)
    read_record(devices[i], "devices[" + std::to_string(i) + "]", database);
  return database;
}

Result<Database> read_database(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  return parse_database(*text, path);
}

std::string write_text(const Database& database) {
  std::vector<std::pair<std::string, std::string>> sorted;
  for (const DeviceRecord& record : database.devices)
    sorted.emplace_back(record.device.backend + '\n' + record.device.key, write_record(record));
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> records;
  for (auto& [key, text] : sorted) records.push_back(std::move(text));
  std::vector<std::string> passed;
  for (const Skipped& skipped : database.skipped) passed.push_back(skipped.text);
  std::sort(passed.begin(), passed.end());
  records.insert(records.end(), passed.begin(), passed.end());
  std::string text = std::string("{\"format\":\"") + kFormat +
                     "\",\"version\":" + std::to_string(kVersion) + ",\n \"devices\":[";
  append_lines(text, records, "  ");
  return text + "}\n";
}

DeviceRecord* find_device(Database& database, const DeviceInfo& device) {
  const auto at = std::find_if(
      database.devices.begin(), database.devices.end(), [&](const DeviceRecord& record) {
        return record.device.backend == device.backend && record.device.key == device.key;
      });
  return at == database.devices.end() ? nullptr : &*at;
}

const DeviceRecord* find_device(const Database& database, const DeviceInfo& device) {
  return find_device(const_cast<Database&>(database), device);
}

void put(Database& database, const DeviceInfo& device, Entry entry) {
  DeviceRecord* record = find_device(database, device);
  if (record == nullptr) record = &database.devices.emplace_back(DeviceRecord{device, {}, {}});
  std::erase_if(record->entries, [&](const Entry& old) {
    return old.problem == entry.problem && old.objective == entry.objective;
  });
  record->entries.push_back(std::move(entry));
}

}  // namespace rnntune
