// SPDX-License-Identifier: Apache-2.0
// What a oneDNN plugin is: lstm.cpp compiled against one major version, as a module of its own,
// because two versions of oneDNN share a name space and cannot be linked into one program.
#pragma once

#include <memory>
#include <string>

#include "reference/opponent.hpp"

namespace rnntune::reference {

struct OnednnPlugin {
  std::string version;  // of the library that was loaded, with its threading: "2.6.3 (OpenMP)"
  // Null and a reason where oneDNN refuses. The problem must be one that onednn_why_not accepts.
  std::unique_ptr<OpponentRun> (*prepare)(const Problem& problem, const Inputs& inputs, int threads,
                                          std::string& why_not);
};

// Fills the plugin, or says why oneDNN cannot work here. A module exports it as kOnednnEntry.
using OnednnEntry = bool (*)(OnednnPlugin& plugin, std::string& why_not);
constexpr const char* kOnednnEntry = "rnntune_onednn_plugin";

}  // namespace rnntune::reference
