// SPDX-License-Identifier: Apache-2.0
#include "simt/device.hpp"

namespace rnntune::simt {

#if !defined(RNNTUNE_SIMT_RACE_CHECKER)
std::span<const KernelEntry> checked_kernels() { return {}; }
#endif

Result<std::shared_ptr<Device>> open_simt(const OpenOptions& options) {
  if (options.profile && !options.checked) {
    return invalid_argument("simt: a profile needs checked kernels");
  }
  const std::span<const KernelEntry> kernels =
      options.checked ? checked_kernels() : plain_kernels();
  if (kernels.empty()) {
    return unsupported(
        "simt: the race checker needs kernels compiled with -fsanitize=thread, which this build's "
        "sanitizers exclude");
  }
  return std::shared_ptr<Device>(open_simt(options, {kernels.begin(), kernels.end()}));
}

}  // namespace rnntune::simt
