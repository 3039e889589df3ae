// SPDX-License-Identifier: Apache-2.0
// The table of back ends: a new one is a row here.
#include "devices.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "cpu/device.hpp"
#include "cuda/device.hpp"
#include "paths.hpp"
#include "rnntune/device.hpp"

namespace rnntune {
namespace {

struct Backend {
  const char* name;
  const char* names;  // of its devices, for people
  bool numbered;      // has devices "name:N"
  Result<std::shared_ptr<Device>> (*open)(int ordinal, const DeviceOptions& options);
  Result<std::vector<DeviceInfo>> (*list)(const DeviceOptions& options);
};

Result<std::shared_ptr<Device>> open_cpu(int, const DeviceOptions& options) {
  return cpu::open_cpu(options);
}

Result<std::vector<DeviceInfo>> list_cpu(const DeviceOptions& options) {
  const Result<std::shared_ptr<Device>> device = cpu::open_cpu(options);
  if (!device.ok()) return device.error();
  return std::vector{(*device)->info()};
}

Result<std::shared_ptr<Device>> open_cuda(int ordinal, const DeviceOptions&) {
  Result<std::shared_ptr<Device>> device =
      cuda::open_cuda({ordinal, data_folder(), cache_folder()});
  if (device.ok()) return device;
  const std::string name = "device cuda:" + std::to_string(ordinal) + ": ";
  return Error{device.error().code, name + device.error().message};
}

Result<std::vector<DeviceInfo>> list_cuda(const DeviceOptions&) { return cuda::list_cuda(); }

constexpr Backend kBackends[] = {
    {"cpu", "cpu", false, open_cpu, list_cpu},
    {"cuda", "cuda, cuda:N", true, open_cuda, list_cuda},
};

// N of "cuda:N", 0 of "cuda", less than 0 of anything else.
int ordinal_of(std::string_view name, const Backend& backend) {
  if (name == backend.name) return 0;
  const std::string prefix = std::string(backend.name) + ":";
  if (!backend.numbered || !name.starts_with(prefix)) return -1;
  const char* const begin = name.data() + prefix.size();
  const char* const end = name.data() + name.size();
  int ordinal = -1;
  const auto [at, error] = std::from_chars(begin, end, ordinal);
  return at == end && error == std::errc() ? ordinal : -1;
}

}  // namespace

std::string device_names() {
  std::string names;
  for (const Backend& backend : kBackends) {
    names += (names.empty() ? "" : ", ") + std::string(backend.names);
  }
  return names;
}

bool is_device_name(std::string_view name) {
  return std::any_of(std::begin(kBackends), std::end(kBackends),
                     [&](const Backend& backend) { return ordinal_of(name, backend) >= 0; });
}

Result<std::shared_ptr<Device>> open_device(std::string_view name, const DeviceOptions& options) {
  for (const Backend& backend : kBackends) {
    const int ordinal = ordinal_of(name, backend);
    if (ordinal >= 0) return backend.open(ordinal, options);
  }
  return invalid_argument("device: expected one of " + device_names() + ", got '" +
                          std::string(name) + "'");
}

Result<std::vector<BackendDevices>> list_devices(const DeviceOptions& options) {
  std::vector<BackendDevices> list;
  for (const Backend& backend : kBackends) {
    Result<std::vector<DeviceInfo>> devices = backend.list(options);
    if (devices.ok()) {
      list.push_back({backend.name, std::move(*devices), {}});
    } else if (devices.error().code == ErrorCode::invalid_argument) {
      return devices.error();
    } else {
      list.push_back({backend.name, {}, devices.error().message});
    }
  }
  return list;
}

}  // namespace rnntune
