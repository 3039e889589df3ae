// SPDX-License-Identifier: Apache-2.0
// A journal read for people, without opening it for writing: what the report shows of it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rnntune/device.hpp"
#include "tuner/records/record.hpp"

namespace rnntune::tuner {

struct JournalView {
  DeviceInfo device;  // of the last session; records of other devices are left out
  Environment environment;
  std::string time;
  std::string version;                       // of rnntune
  std::map<std::string, std::string> names;  // a suite's name for a problem string
  std::vector<Record> records;               // the last outcome of each config of a problem
  std::vector<Final> finals;                 // the last one of each problem
  int damaged_lines = 0;
};

// not_found where there is no file; bad_file where no line of it is a journal's session.
Result<JournalView> read_journal(const std::string& path);
Result<JournalView> parse_journal(std::string_view text, const std::string& path);

}  // namespace rnntune::tuner
