// SPDX-License-Identifier: Apache-2.0
#include "device/cublas_lt.hpp"

namespace rnntune {

Result<CublasLt> load_cublas_lt(const SharedLibrary& library) {
  CublasLt cublas_lt;
  std::string missing;
#define X(name) load_symbol(library, #name, cublas_lt.name, missing);
  RNNTUNE_CUBLAS_LT(X)
#undef X
  if (Status status = all_loaded(library, missing); !status.ok()) return status.error();
  return cublas_lt;
}

Result<CublasLt> open_cublas_lt(std::span<const std::string> folders) {
  const std::string files[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
  const Result<SharedLibrary> library = SharedLibrary::open(files, folders);
  if (!library.ok()) return library.error();
  return load_cublas_lt(*library);
}

}  // namespace rnntune
