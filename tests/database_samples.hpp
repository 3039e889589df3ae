// SPDX-License-Identifier: Apache-2.0
// Entries and devices for the tests of the tuning database.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "database/database.hpp"

namespace rnntune::samples {

inline DeviceInfo device(const std::string& key = "cpu:zen4", const std::string& isa = "avx512") {
  DeviceInfo info;
  info.backend = "cpu";
  info.name = "A CPU of " + key;
  info.architecture = "x86_64/" + isa;
  info.key = key;
  info.properties = {{"vendor", "AuthenticAMD"}, {"model", "97"}, {"l2", "1048576"}};
  return info;
}

inline Problem problem(const std::string& text) { return parse_problem(text).value(); }

inline Entry entry(const std::string& text = "lstm:L2,T35,B20,I650,H650,f32") {
  Entry e;
  e.problem = problem(text);
  e.config = {"cell", {{"layout", "tbh"}, {"threads", "2"}, {"chunk", "0"}}};
  e.kernel_hash = "9f3a";
  e.time_us = {812.4, 809.9, 815.0 + 1e-13, 41, 0.006, "converged"};
  e.workspace_bytes = 1 << 20;
  e.reserve_bytes = (std::int64_t{1} << 62) + 1;
  e.packed_bytes = 4096;
  e.validation = {"oracle", 1e-7, 2e-5, "dW_hh[0]"};
  e.against = {{"onednn",
                "2.6.3",
                "ref:any",
                {974.9, 970, 980.5, 41, 0.004, "converged"},
                {1.2, 1.18, 1.22}}};
  e.tied = {{"pointwise", {}}, {"cell", {{"layout", "thb"}, {"threads", "2"}, {"chunk", "8"}}}};
  e.environment = {{"compiler", "g++ 12.2"}, {"library", "0.1.0"}, {"os", "Linux \"x\" \\ é"}};
  e.seed = ~std::uint64_t{0};
  e.budget_s = 60;
  e.evaluations = 120;
  e.complete = true;
  e.time = "2026-11-30T10:00:00Z";
  return e;
}

// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "rnntune-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_database(const std::string& path, const DeviceInfo& device,
                           std::initializer_list<Entry> entries) {
  Database database;
  for (const Entry& e : entries) put(database, device, e);
  write_file(path, write_text(database));
}

}  // namespace rnntune::samples
