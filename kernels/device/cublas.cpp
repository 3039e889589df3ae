// SPDX-License-Identifier: Apache-2.0
#include "device/cublas.hpp"

namespace rnntune {

Result<Cublas> load_cublas(const SharedLibrary& library) {
  Cublas cublas;
  std::string missing;
#define X(name) load_symbol(library, #name, cublas.name, missing);
  RNNTUNE_CUBLAS(X)
#undef X
  if (Status status = all_loaded(library, missing); !status.ok()) return status.error();
  return cublas;
}

Result<Cublas> open_cublas(std::span<const std::string> folders) {
  const std::string files[] = {"libcublas.so.13", "libcublas.so.12"};
  const Result<SharedLibrary> library = SharedLibrary::open(files, folders);
  if (!library.ok()) return library.error();
  return load_cublas(*library);
}

}  // namespace rnntune
