// SPDX-License-Identifier: Apache-2.0
#include "simt/registry.hpp"

#include <algorithm>
#include <string>

namespace rnntune::simt {
namespace {

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

}  // namespace

Result<const KernelEntry*> find_kernel(std::span<const KernelEntry> entries,
                                       const gpu::KernelId& id) {
  const std::string wanted = without_spaces(id.expression);
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const KernelEntry& e) {
    return id.file == e.file && wanted == without_spaces(e.expression);
  });
  if (found != entries.end()) return &*found;
  return Error{ErrorCode::not_found, "kernel " + id.expression + " of " + id.file +
                                         ": is not among the " + std::to_string(entries.size()) +
                                         " instances that were compiled for the host"};
}

}  // namespace rnntune::simt
