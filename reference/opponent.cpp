// SPDX-License-Identifier: Apache-2.0
#include "reference/opponent.hpp"

#include "reference/cudnn/cudnn.hpp"
#include "reference/onednn/onednn.hpp"

namespace rnntune::reference {
namespace {

struct OpponentRow {
  const char* name;
  const char* backend;  // of the device that it runs on; null: on the host, whatever the device is
  std::vector<std::shared_ptr<Opponent>> (*find)(const OpponentSite& site,
                                                 std::vector<std::string>& absent);
};

constexpr OpponentRow kOpponents[] = {
    {"cudnn", "cuda", find_cudnn},
    {"onednn", nullptr, find_onednn},
};

const OpponentRow* find_row(std::string_view name) {
  for (const OpponentRow& row : kOpponents) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace

Status check_opponent_name(std::string_view name) {
  if (find_row(name) != nullptr) return {};
  std::string known;
  for (const OpponentRow& row : kOpponents) {
    known += known.empty() ? row.name : std::string(", ") + row.name;
  }
  return invalid_argument("opponent '" + std::string(name) + "' is unknown; known are " + known);
}

Result<std::vector<std::shared_ptr<Opponent>>> find_opponents(std::string_view name,
                                                              const OpponentSite& site,
                                                              std::vector<std::string>& absent) {
  if (Status known = check_opponent_name(name); !known.ok()) return known.error();
  const OpponentRow& row = *find_row(name);
  const std::string& backend = site.device->info().backend;
  if (row.backend != nullptr && row.backend != backend) {
    absent.push_back("runs on a " + std::string(row.backend) + " device, this one is " + backend);
    return std::vector<std::shared_ptr<Opponent>>();
  }
  return row.find(site, absent);
}

}  // namespace rnntune::reference
