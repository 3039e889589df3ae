// SPDX-License-Identifier: Apache-2.0
// The table of back ends: a new one is a row here.
#include "cpu/device.hpp"
#include "rnntune/device.hpp"

namespace rnntune {
namespace {

struct Backend {
  const char* name;
  Result<std::shared_ptr<Device>> (*open)(const DeviceOptions& options);
};

constexpr Backend kBackends[] = {
    {"cpu", cpu::open_cpu},
};

}  // namespace

Result<std::shared_ptr<Device>> open_device(std::string_view name, const DeviceOptions& options) {
  std::string names;
  for (const Backend& backend : kBackends) {
    if (name == backend.name) return backend.open(options);
    names += (names.empty() ? "" : ", ") + std::string(backend.name);
  }
  return invalid_argument("device: expected one of " + names + ", got '" + std::string(name) + "'");
}

}  // namespace rnntune
