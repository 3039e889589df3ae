// SPDX-License-Identifier: Apache-2.0
// What stands for cuDNN in a build that had no headers of it.
#include "reference/cudnn/cudnn.hpp"

namespace rnntune::reference {
namespace {

constexpr const char* kAbsent = "this rnntune was built without cuDNN: its headers were not found";

}  // namespace

std::vector<std::shared_ptr<Opponent>> find_cudnn(const OpponentSite&,
                                                  std::vector<std::string>& absent) {
  absent.push_back(kAbsent);
  return {};
}

Result<std::string> cudnn_version(const std::string&) { return unsupported(kAbsent); }

}  // namespace rnntune::reference
