// SPDX-License-Identifier: Apache-2.0
// Libraries of a vendor that are opened when first needed. librnntune links none of them, so it
// starts and runs where they are absent; an absent one is an error with a reason in one line.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rnntune/result.hpp"

namespace rnntune {

// Folders in which CUDA libraries may lie outside the loader's path, in the order of trying: a
// toolkit ($CUDA_HOME, $CUDA_PATH, /usr/local/cuda), then what PyPI wheels have unpacked, which is
// nvidia/*/lib below $RNNTUNE_CUDA_WHEELS, below the site-packages of an active Python environment
// ($VIRTUAL_ENV), and below `data_folder`, which may be empty. Only those that exist.
std::vector<std::string> cuda_library_folders(const std::string& data_folder);

// An open library. It stays open: nothing may unmap code that another thread runs.
class SharedLibrary {
 public:
  // Tries every file name in the loader's own path, then in every folder.
  static Result<SharedLibrary> open(std::span<const std::string> files,
                                    std::span<const std::string> folders);

  void* symbol(const char* name) const;              // null: it has none
  const std::string& path() const { return path_; }  // as it was opened

 private:
  SharedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_;
  std::string path_;
};

// Sets a function pointer; `missing` becomes the name of the first function that is not there.
template <class Function>
void load_symbol(const SharedLibrary& library, const char* name, Function& function,
                 std::string& missing) {
  function = reinterpret_cast<Function>(library.symbol(name));
  if (function == nullptr && missing.empty()) missing = name;
}

// Success, or the error that says which function `library` lacks.
Status all_loaded(const SharedLibrary& library, const std::string& missing);

}  // namespace rnntune
