// SPDX-License-Identifier: Apache-2.0
#include "paths.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace rnntune {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string folder(const char* xdg, const char* below_home) {
  std::filesystem::path base = variable(xdg);
  if (!base.is_absolute()) {
    const std::filesystem::path home = variable("HOME");
    if (!home.is_absolute()) return {};
    base = home / below_home;
  }
  return (base / "rnntune").string();
}

}  // namespace

std::string config_folder() { return folder("XDG_CONFIG_HOME", ".config"); }
std::string data_folder() { return folder("XDG_DATA_HOME", ".local/share"); }
std::string cache_folder() { return folder("XDG_CACHE_HOME", ".cache"); }

std::string user_database() {
  const std::string data = data_folder();
  return data.empty() ? "" : data + "/rnntune.db.json";
}

std::string shipped_databases() {
  const char* given = std::getenv("RNNTUNE_DATABASES");
  return given == nullptr ? RNNTUNE_DATABASE_FOLDER : given;
}

std::vector<std::string> default_databases() {
  std::vector<std::string> shipped;
  std::error_code error;
  for (std::filesystem::directory_iterator at(shipped_databases(), error), end; !error && at != end;
       at.increment(error))
    if (at->path().extension() == ".json") shipped.push_back(at->path().string());
  std::sort(shipped.begin(), shipped.end());
  if (const std::string own = user_database(); !own.empty()) shipped.insert(shipped.begin(), own);
  return shipped;
}

}  // namespace rnntune
