// SPDX-License-Identifier: Apache-2.0
#include "device/nvrtc.hpp"

namespace rnntune {

Result<Nvrtc> load_nvrtc(const SharedLibrary& library) {
  Nvrtc nvrtc;
  std::string missing;
#define X(name) load_symbol(library, #name, nvrtc.name, missing);
  RNNTUNE_NVRTC(X)
#undef X
  if (Status status = all_loaded(library, missing); !status.ok()) return status.error();
  return nvrtc;
}

Result<Nvrtc> open_nvrtc(std::span<const std::string> folders) {
  const std::string files[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
  const Result<SharedLibrary> library = SharedLibrary::open(files, folders);
  if (!library.ok()) return library.error();
  return load_nvrtc(*library);
}

}  // namespace rnntune
