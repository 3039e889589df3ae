// SPDX-License-Identifier: Apache-2.0
#include "reference/cudnn/cudnn.hpp"

#include "device/cudnn.hpp"
#include "reference/cudnn/sweep.hpp"

namespace rnntune::reference {
namespace {

Result<Cudnn> open(const std::string& data_folder) {
  return open_cudnn(cuda_library_folders(data_folder));
}

}  // namespace

std::vector<std::shared_ptr<Opponent>> find_cudnn(const OpponentSite& site,
                                                  std::vector<std::string>& absent) {
  const Result<Cudnn> table = open(site.data_folder);
  if (!table.ok()) {
    absent.push_back(table.error().message);
    return {};
  }
  auto device = std::shared_ptr<gpu::GpuDevice>(site.device, &gpu::gpu(*site.device));
  auto opponent = cudnn::make_opponent(*table, std::move(device));
  if (!opponent.ok()) {
    absent.push_back(version_of(*table) + ": " + opponent.error().message);
    return {};
  }
  return {*opponent};
}

Result<std::string> cudnn_version(const std::string& data_folder) {
  const Result<Cudnn> table = open(data_folder);
  if (!table.ok()) return table.error();
  return version_of(*table);
}

}  // namespace rnntune::reference
