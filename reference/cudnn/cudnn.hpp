// SPDX-License-Identifier: Apache-2.0
// cuDNN as an opponent. This header needs none of its headers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reference/opponent.hpp"

namespace rnntune::reference {

// The site's device is a GPU (gpu::GpuDevice).
std::vector<std::shared_ptr<Opponent>> find_cudnn(const OpponentSite& site,
                                                  std::vector<std::string>& absent);

// "9.19.0" of the library that would be loaded, whether or not there is a device for it; the error
// says in one line why there is none.
Result<std::string> cudnn_version(const std::string& data_folder);

}  // namespace rnntune::reference
