// SPDX-License-Identifier: Apache-2.0
// cuDNN on a device through any table of its functions: tests bring their own.
#pragma once

#include <memory>
#include <string>

#include "device/cudnn.hpp"
#include "device/gpu.hpp"
#include "reference/opponent.hpp"

namespace rnntune::reference::cudnn {

// Why cuDNN has no such network, or we have no reference for it; empty where it may be tried.
std::string why_not(const Problem& problem);

// Its prepare() tries every algorithm and keeps the fastest whose outputs are right.
Result<std::shared_ptr<Opponent>> make_opponent(const Cudnn& cudnn,
                                                std::shared_ptr<gpu::GpuDevice> device);

}  // namespace rnntune::reference::cudnn
