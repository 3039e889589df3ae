// SPDX-License-Identifier: Apache-2.0
// What stands for the CUDA device in a build that had no headers of the toolkit.
#include "cuda/compile_all.hpp"
#include "cuda/device.hpp"

namespace rnntune::cuda {

namespace {

Error absent() {
  return unsupported("this rnntune was built without CUDA: its headers were not found then");
}

}  // namespace

Result<std::shared_ptr<Device>> open_cuda(const OpenOptions&) { return absent(); }
Result<std::shared_ptr<Device>> open_cuda(const OpenOptions&, std::span<const KernelText>) {
  return absent();
}
std::span<const KernelText> kernel_texts() { return {}; }

Result<std::vector<DeviceInfo>> list_cuda() { return absent(); }

Result<std::vector<Compiled>> compile_all(std::span<const ToCompile>, const CompileOptions&,
                                          const std::function<void(const Compiled&)>&) {
  return absent();
}

}  // namespace rnntune::cuda
