// SPDX-License-Identifier: Apache-2.0
#include "device/shared_library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace rnntune {
namespace {

namespace fs = std::filesystem;

void add_folder(const fs::path& folder, std::vector<std::string>& folders) {
  std::error_code none;
  if (!fs::is_directory(folder, none)) return;
  const std::string text = folder.string();
  if (std::find(folders.begin(), folders.end(), text) == folders.end()) folders.push_back(text);
}

void add_toolkit(const fs::path& root, std::vector<std::string>& folders) {
  add_folder(root / "lib64", folders);
  add_folder(root / "lib", folders);
}

// Sorted, so that what is found does not depend on the file system.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void add_wheels(const fs::path& root, std::vector<std::string>& folders) {
  for (const fs::path& part : entries(root / "nvidia")) add_folder(part / "lib", folders);
}

void add_python(const fs::path& root, std::vector<std::string>& folders) {
  for (const fs::path& version : entries(root / "lib")) {
    if (version.filename().string().starts_with("python")) {
      add_wheels(version / "site-packages", folders);
    }
  }
}

// The loader's own words, in one line.
std::string loader_error() {
  const char* text = dlerror();
  std::string line = text == nullptr ? "unknown error of the loader" : text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace

std::vector<std::string> cuda_library_folders(const std::string& data_folder) {
  const struct {
    const char* variable;  // null: `fallback` only
    std::string fallback;
    void (*add)(const fs::path& root, std::vector<std::string>& folders);
  } places[] = {
      {"CUDA_HOME", "", add_toolkit},
      {"CUDA_PATH", "", add_toolkit},
      {nullptr, "/usr/local/cuda", add_toolkit},
      {"RNNTUNE_CUDA_WHEELS", "", add_wheels},
      {"VIRTUAL_ENV", "", add_python},
      {nullptr, data_folder, add_wheels},
  };
  std::vector<std::string> folders;
  for (const auto& place : places) {
    const char* value = place.variable == nullptr ? nullptr : std::getenv(place.variable);
    const std::string root = value == nullptr ? place.fallback : value;
    if (!root.empty()) place.add(root, folders);
  }
  return folders;
}

Result<SharedLibrary> SharedLibrary::open(std::span<const std::string> files,
                                          std::span<const std::string> folders) {
  std::string broken;  // why a file that is there does not load
  std::string names;
  for (const std::string& file : files) {
    if (void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      return SharedLibrary(handle, file);
    }
    // The loader blames the file itself where it found none, and what it lacks where it did.
    const std::string why = loader_error();
    const bool absent = why.starts_with(file + ": cannot open shared object file: No such file");
    if (broken.empty() && !absent) broken = why;
    names += (names.empty() ? "" : " or ") + file;
  }
  std::string tried = "the loader's path";
  for (const std::string& folder : folders) {
    tried += ", " + folder;
    for (const std::string& file : files) {
      const std::string path = folder + "/" + file;
      std::error_code none;
      if (!fs::exists(path, none)) continue;
      if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        return SharedLibrary(handle, path);
      }
      const std::string why = loader_error();
      if (broken.empty()) broken = why;
    }
  }
  return Error{ErrorCode::not_found,
               "no " + names + " (tried " + tried + (broken.empty() ? ")" : "); " + broken)};
}

void* SharedLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

Status all_loaded(const SharedLibrary& library, const std::string& missing) {
  if (missing.empty()) return {};
  return Error{ErrorCode::unsupported, library.path() + " has no function " + missing};
}

}  // namespace rnntune
