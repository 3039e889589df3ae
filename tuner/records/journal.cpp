// SPDX-License-Identifier: Apache-2.0
#include "tuner/records/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "rnntune/rnn.hpp"
#include "tuner/command.hpp"
#include "tuner/measure/environment.hpp"

namespace rnntune::tuner {
namespace {

std::string key_of(const Attempt& attempt) {
  return attempt.problem + '\n' + to_string(attempt.config) + '\n' + attempt.kernel_hash;
}

std::string failure(const std::string& path) {
  return "journal '" + path + "': " + std::strerror(errno);
}

std::string read_all(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_all(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw BadInput(failure(path));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Result<Journal> Journal::open(const std::string& path, const std::string& device_key) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return Error{ErrorCode::bad_file, failure(path)};
  Journal journal(path, file);
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error{ErrorCode::bad_file, "journal '" + path + "': expected a regular file"};
  }
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::bad_file, "journal '" + path + "' is in use by another run"};
  }
  const std::string text = read_all(path);
  journal.read(text, device_key);
  if (!text.empty() && text.back() != '\n') write_all(file, "\n", path);
  return journal;
}

Journal::Journal(Journal&& other) noexcept { *this = std::move(other); }

Journal& Journal::operator=(Journal&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(damaged_lines_, other.damaged_lines_);
  std::swap(histories_, other.histories_);
  return *this;
}

Journal::~Journal() {
  if (file_ >= 0) ::close(file_);
}

const Journal::History* Journal::history(const Attempt& attempt) const {
  const auto found = histories_.find(key_of(attempt));
  return found == histories_.end() ? nullptr : &found->second;
}

void Journal::read(std::string_view text, const std::string& device_key) {
  bool ours = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_object()) {
      read_line(json, device_key, ours);
    } else {
      ++damaged_lines_;
    }
  }
}

// A session line says whose the lines after it are.
void Journal::read_line(const Json& json, const std::string& device_key, bool& ours) {
  const std::string type = json.value("type", Json()).is_string() ? json["type"] : "";
  if (type == "session") {
    DeviceInfo device;
    ours = json.contains("device") && decode(json["device"], device).empty() &&
           device.key == device_key;
  }
  if (!ours) return;
  if (type == "start") {
    Attempt attempt;
    if (!from_json(json, attempt).empty()) return void(++damaged_lines_);
    ++histories_[key_of(attempt)].unfinished;
  } else if (type == "outcome") {
    Record record;
    if (!from_json(json, record).empty()) return void(++damaged_lines_);
    histories_[key_of(record.attempt)] = {0, record};
  }
}

void Journal::append(const Json& json) { write_all(file_, dump(json) + "\n", path_); }

void Journal::write(const SessionHeader& header) {
  Json problems = Json::array();
  for (const auto& [name, problem] : header.problems) {
    problems.push_back({{"name", name}, {"problem", problem}});
  }
  append({{"format", "rnntune-journal"},
          {"version", 1},
          {"type", "session"},
          {"time", utc_now()},
          {"library", version()},
          {"device", encode(header.device)},
          {"environment", encode(header.environment)},
          {"seed", header.seed},
          {"strategy", header.strategy},
          {"budget_s", header.budget_s},
          {"problems", problems}});
}

void Journal::write(const Attempt& start) { append(to_json(start)); }

void Journal::write(const Record& outcome) {
  append(to_json(outcome));
  histories_[key_of(outcome.attempt)] = {0, outcome};
}

void Journal::write(const Final& final) { append(to_json(final)); }

}  // namespace rnntune::tuner
