// SPDX-License-Identifier: Apache-2.0
// The tuning database in memory, and its text (docs/formats.md). One codec reads and writes it;
// locking, replacing the file and merging live in tuner/records/database_write.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rnntune/config.hpp"
#include "rnntune/device.hpp"
#include "rnntune/problem.hpp"
#include "rnntune/result.hpp"

namespace rnntune {

// A measured time in microseconds: median of the samples and its 95% interval. Too few samples have
// no interval: low and high are NaN then, and absent in the file.
struct TimeUs {
  double median = 0;
  double low = 0;
  double high = 0;
  std::int64_t samples = 0;
  double noise = 0;  // relative spread of the samples; NaN: unknown
  std::string stop;  // what ended the sampling: "converged", "budget"

  bool operator==(const TimeUs&) const = default;
};

struct Validation {
  std::string reference;
  double error = 0;  // NaN: the output had one
  double bound = 0;
  std::string tensor;  // the worst one

  bool operator==(const Validation&) const = default;
};

// An opponent's time over ours; above 1 is a win.
struct Ratio {
  double median = 0;
  double low = 0;
  double high = 0;

  bool operator==(const Ratio&) const = default;
};

// An opponent measured beside the winner.
struct Against {
  std::string opponent;
  std::string version;
  std::string algorithm;
  TimeUs time_us;
  Ratio ratio;

  bool operator==(const Against&) const = default;
};

using Environment = std::map<std::string, std::string>;  // compiler, library, os, driver

// The winner of one problem and objective on one device.
struct Entry {
  Problem problem;
  std::string objective = "step";
  Config config;
  std::string kernel_hash;  // of the config's variant when it was measured
  TimeUs time_us;
  std::int64_t workspace_bytes = 0;
  std::int64_t reserve_bytes = 0;
  std::int64_t packed_bytes = 0;
  Validation validation;
  std::vector<Against> against;
  std::vector<Config> tied;  // configs that could not be told apart from this one
  Environment environment;   // in the file: an index into the device's environments
  std::string policy = "warm";
  std::uint64_t seed = 0;
  double budget_s = 0;
  std::int64_t evaluations = 0;
  bool complete = false;  // the search ended by itself, not by its budget
  std::string time;       // when, as 2026-11-30T10:00:00Z

  bool operator==(const Entry&) const = default;
};

// What a reader passed over. Its JSON text is kept, so that rewriting the file loses nothing.
struct Skipped {
  std::string place;  // devices[0].entries[3]
  std::string reason;
  std::string text;                        // without its environment, where that is known
  std::optional<Environment> environment;  // of an entry
};

struct DeviceRecord {
  DeviceInfo device;  // backend, name, architecture, key and properties are stored
  std::vector<Entry> entries;
  std::vector<Skipped> skipped;
};

struct Database {
  std::vector<DeviceRecord> devices;
  std::vector<Skipped> skipped;  // whole device records
};

// The message names the file and the place in it: not_found where there is no file; bad_file where
// it cannot be read, is no JSON, or has another format or a newer version. A damaged entry inside a
// sound file is no error: it is in `skipped`.
Result<Database> read_database(const std::string& path);
Result<Database> parse_database(std::string_view text, const std::string& path);

// The file's text, one line per entry, sorted by device, problem and objective: equal contents give
// equal bytes, and numbers read back as they were.
std::string write_text(const Database& database);

// Why an entry must never be chosen: a time that is no plausible time, a validation that is missing
// or failed, a problem or config that is none.
Status check_entry(const Entry& entry);

// A strict total order of the entries of one problem and objective: a sound entry before one that
// check_entry rejects; then a search that ended by itself; then the newer; then more evaluations;
// then the faster; then the smaller text, so that only equal entries compare equal.
bool better(const Entry& a, const Entry& b);

// Sets the entry of its problem and objective on this device, whatever was there.
void put(Database& database, const DeviceInfo& device, Entry entry);

DeviceRecord* find_device(Database& database, const DeviceInfo& device);
const DeviceRecord* find_device(const Database& database, const DeviceInfo& device);

}  // namespace rnntune
