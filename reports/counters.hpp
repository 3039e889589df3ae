// SPDX-License-Identifier: Apache-2.0
// Hardware counters of a GPU, for people.
#pragma once

#include <string>

#include "reports/table.hpp"

namespace rnntune::reports {

// One row per problem and contender that was counted.
Table counters_table(const Report& report);

// "counters of cudnn: DRAM 1.2 GiB, of DRAM peak 34.5%, tensor pipe 0%, occupancy 25%, warps wait
// for long scoreboard 45%, barrier 12%"; what was not counted is left out.
std::string counters_line(const GpuCounters& counters);

}  // namespace rnntune::reports
