// SPDX-License-Identifier: Apache-2.0
#include "device/cudnn.hpp"

namespace rnntune {
namespace {

constexpr std::size_t kOldestMajor = 9;

struct Version {
  std::size_t major, minor, patch;
};

// 8.9.7 is 8907, 9.19.0 is 91900.
Version decode(std::size_t number) {
  const std::size_t unit = number < 10000 ? 1000 : 10000;
  return {number / unit, number % unit / 100, number % 100};
}

}  // namespace

std::string version_of(const Cudnn& cudnn) {
  const Version version = decode(cudnn.cudnnGetVersion());
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

Status check_version(const Cudnn& cudnn) {
  if (decode(cudnn.cudnnGetVersion()).major >= kOldestMajor) return {};
  return unsupported("cuDNN " + version_of(cudnn) + " is too old, expected " +
                     std::to_string(kOldestMajor) + " or newer");
}

Result<Cudnn> load_cudnn(const SharedLibrary& library) {
  Cudnn cudnn;
  std::string missing;
#define X(name) load_symbol(library, #name, cudnn.name, missing);
  RNNTUNE_CUDNN(X)
#undef X
  // The version says more than what an old one lacks.
  if (cudnn.cudnnGetVersion != nullptr) {
    if (Status status = check_version(cudnn); !status.ok()) {
      return Error{status.error().code, library.path() + ": " + status.error().message};
    }
  }
  if (Status status = all_loaded(library, missing); !status.ok()) return status.error();
  return cudnn;
}

Result<Cudnn> open_cudnn(std::span<const std::string> folders) {
  const std::string file = "libcudnn.so.9";
  const Result<SharedLibrary> library = SharedLibrary::open({&file, 1}, folders);
  if (!library.ok()) return library.error();
  return load_cudnn(*library);
}

}  // namespace rnntune
