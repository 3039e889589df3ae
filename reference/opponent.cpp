// SPDX-License-Identifier: Apache-2.0
#include "reference/opponent.hpp"

#include "reference/onednn/onednn.hpp"

namespace rnntune::reference {
namespace {

struct OpponentRow {
  const char* name;
  std::vector<std::shared_ptr<Opponent>> (*find)(std::vector<std::string>& absent);
};

constexpr OpponentRow kOpponents[] = {
    {"onednn", find_onednn},
};

}  // namespace

Result<std::vector<std::shared_ptr<Opponent>>> find_opponents(std::string_view name,
                                                              std::vector<std::string>& absent) {
  std::string known;
  for (const OpponentRow& row : kOpponents) {
    if (row.name == name) return row.find(absent);
    known += known.empty() ? row.name : std::string(", ") + row.name;
  }
  return invalid_argument("opponent '" + std::string(name) + "' is unknown; known are " + known);
}

}  // namespace rnntune::reference
