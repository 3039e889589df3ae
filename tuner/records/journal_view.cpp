// SPDX-License-Identifier: Apache-2.0
#include "tuner/records/journal_view.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace rnntune::tuner {
namespace {

std::string text_of(const Json& json, const char* field) {
  const auto found = json.find(field);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// Reads line by line; a session of another device starts the view anew, so that the last session's
// device is the one that is shown. Its earlier records come back when its own sessions recur.
class Reader {
 public:
  void read(std::string_view line) {
    const Json json = Json::parse(line, nullptr, false);
    const std::string type = json.is_object() ? text_of(json, "type") : "";
    if (type == "session") {
      read_session(json);
    } else if (type == "outcome" && current_) {
      read_outcome(json);
    } else if (type == "final" && current_) {
      read_final(json);
    } else if (type != "start") {
      ++damaged_;
    }
  }

  const JournalView* last() {
    if (current_) current_->damaged_lines = damaged_;
    return current_;
  }

 private:
  void read_session(const Json& json) {
    DeviceInfo device;
    if (!json.contains("device") || !decode(json["device"], device).empty()) {
      ++damaged_;
      return;
    }
    current_ = &views_[device.key];
    current_->device = device;
    current_->time = text_of(json, "time");
    current_->version = text_of(json, "library");
    if (json.contains("environment")) {
      Environment environment;
      if (decode(json["environment"], environment).empty()) current_->environment = environment;
    }
    if (!json.contains("problems") || !json["problems"].is_array()) return;
    for (const Json& row : json["problems"]) {
      if (!row.is_object() || text_of(row, "problem").empty()) continue;
      current_->names[text_of(row, "problem")] = text_of(row, "name");
    }
  }

  void read_outcome(const Json& json) {
    Record record;
    if (!from_json(json, record).empty()) {
      ++damaged_;
      return;
    }
    const std::string key = record.attempt.problem + " " + to_string(record.attempt.config);
    replace(current_->records, current_->device.key + " " + key, record);
  }

  void read_final(const Json& json) {
    Final final;
    if (!from_json(json, final).empty()) {
      ++damaged_;
      return;
    }
    replace(current_->finals, current_->device.key + " final " + final.problem, final);
  }

  // The later record takes the place of the earlier one with the same key.
  template <class T>
  void replace(std::vector<T>& list, const std::string& key, const T& value) {
    const auto [place, added] = places_.try_emplace(key, list.size());
    if (added) {
      list.push_back(value);
    } else {
      list[place->second] = value;
    }
  }

  std::map<std::string, JournalView> views_;  // by device key
  std::map<std::string, std::size_t> places_;
  JournalView* current_ = nullptr;
  int damaged_ = 0;
};

}  // namespace

Result<JournalView> parse_journal(std::string_view text, const std::string& path) {
  Reader reader;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.empty()) reader.read(line);
  }
  if (const JournalView* view = reader.last()) return *view;
  return Error{ErrorCode::bad_file, path + ": expected a journal, found no session record"};
}

Result<JournalView> read_journal(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) return Error{ErrorCode::not_found, "cannot read the journal '" + path + "'"};
  std::ostringstream text;
  text << file.rdbuf();
  return parse_journal(text.str(), path);
}

}  // namespace rnntune::tuner
