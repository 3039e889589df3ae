// SPDX-License-Identifier: Apache-2.0
// In place of the files that need CUPTI's headers, where a build has none.
#include "tuner/gpu/activity.hpp"
#include "tuner/gpu/counters.hpp"

namespace rnntune::tuner {
namespace {

Error absent() { return unsupported("this build of rnntune is without CUPTI's headers"); }

}  // namespace

Result<std::unique_ptr<ActivityTrace>> open_activity_trace(std::span<const std::string>,
                                                           GraphDetail, const Probe&) {
  return absent();
}

Result<CounterReport> count_step(int, std::span<const std::string>, const Probe&) {
  return absent();
}

}  // namespace rnntune::tuner
