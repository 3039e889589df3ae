// SPDX-License-Identifier: Apache-2.0
// oneDNN as an opponent: whichever of its plugins load here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reference/opponent.hpp"

namespace rnntune::reference {

std::string onednn_why_not(const Problem& problem);

std::vector<std::shared_ptr<Opponent>> find_onednn(const OpponentSite& site,
                                                   std::vector<std::string>& absent);

using Prepare =
    std::function<Result<std::unique_ptr<OpponentRun>>(const Problem&, const Inputs&, int threads)>;

// Runs an opponent on 1x1x1 and on a small problem against the oracle: "reference broken: ..."
// where it fails, empty where it holds. A wrong wrapper must never read as a wrong kernel.
std::string self_check(const Prepare& prepare);

}  // namespace rnntune::reference
