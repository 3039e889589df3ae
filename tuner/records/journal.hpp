// SPDX-License-Identifier: Apache-2.0
// The journal: every evaluation, written before it starts and after it ended, so that a killed run
// resumes and a config that killed the process is known.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rnntune/device.hpp"
#include "tuner/records/record.hpp"

namespace rnntune::tuner {

// What is written at the start of a run.
struct SessionHeader {
  DeviceInfo device;
  Environment environment;
  std::uint64_t seed = 1;
  std::string strategy;
  double budget_s = 0;
  std::vector<std::pair<std::string, std::string>> problems;  // name and problem string
};

class Journal {
 public:
  // Reads what is there, for the evaluations of this device, and opens it for appending. A line
  // that is no record (the last one, torn by a kill) is passed over and counted. One run at a time:
  // another one's lock on the file is an error.
  static Result<Journal> open(const std::string& path, const std::string& device_key);
  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&& other) noexcept;
  ~Journal();

  struct History {
    int unfinished = 0;            // starts since the last outcome
    std::optional<Record> record;  // the last outcome
  };
  // None where it was never tried.
  const History* history(const Attempt& attempt) const;

  int damaged_lines() const { return damaged_lines_; }

  // Each appends a line and has handed it to the system when it returns. Throws BadInput where the
  // file cannot be written any more.
  void write(const SessionHeader& header);
  void write(const Attempt& start);
  void write(const Record& outcome);
  void write(const Final& final);

 private:
  Journal(std::string path, int file) : path_(std::move(path)), file_(file) {}
  void read(std::string_view text, const std::string& device_key);
  void read_line(const Json& json, const std::string& device_key, bool& ours);
  void append(const Json& json);

  std::string path_;
  int file_ = -1;
  int damaged_lines_ = 0;
  std::map<std::string, History> histories_;
};

}  // namespace rnntune::tuner
