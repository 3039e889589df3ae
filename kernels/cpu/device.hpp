// SPDX-License-Identifier: Apache-2.0
// The CPU as a device: its memory is the host's, every call has ended when it returns.
#pragma once

#include <memory>

#include "rnntune/device.hpp"

namespace rnntune::cpu {

Result<std::shared_ptr<Device>> open_cpu(const DeviceOptions& options);

}  // namespace rnntune::cpu
