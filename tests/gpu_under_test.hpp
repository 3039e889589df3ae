// SPDX-License-Identifier: Apache-2.0
// The GPU that a test is about: the emulator, or the one that RNNTUNE_DEVICE names ("cuda:0"), as
// tools/gpu_check.sh does on a machine that has one. Tests of the meson suite `gpu` take theirs
// from here, and their suites too, since they travel without the source tree.
#pragma once

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "simt/device.hpp"

namespace rnntune::fixtures {

inline std::string from_environment(const char* name, const char* fallback) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? fallback : value;
}

inline std::string device_under_test() { return from_environment("RNNTUNE_DEVICE", "simt"); }
inline bool emulated() { return device_under_test() == "simt"; }
inline std::string suites_folder() { return from_environment("RNNTUNE_SUITES", RNNTUNE_SUITES); }

// `options` are the emulator's. A GPU is opened once, and has no race checker: null where that is
// asked for. Throws where there is no such device, which fails a test.
inline std::shared_ptr<Device> gpu_under_test(const simt::OpenOptions& options = {}) {
  if (emulated()) {
    const auto device = simt::open_simt(options);
    return device.ok() ? *device : nullptr;
  }
  if (options.checked) return nullptr;
  static const Result<std::shared_ptr<Device>> gpu = open_device(device_under_test());
  if (!gpu.ok()) throw std::runtime_error(gpu.error().message);
  return *gpu;
}

}  // namespace rnntune::fixtures
