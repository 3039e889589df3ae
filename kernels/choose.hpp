// SPDX-License-Identifier: Apache-2.0
// Which config Rnn::create uses: the one given, else what the lookup ladder finds.
#pragma once

#include "rnntune/rnn.hpp"

namespace rnntune {

Result<Explanation> choose_config(const Problem& problem, const DeviceInfo& device,
                                  const RnnOptions& options);

}  // namespace rnntune
