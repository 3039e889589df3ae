// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "tuner/command.hpp"

namespace rnntune::tuner {

extern const Command kCompile;
extern const Command kDevices;
extern const Command kSpace;
extern const Command kInspect;
extern const Command kTune;
extern const Command kVerify;
extern const Command kBench;
extern const Command kReport;
extern const Command kDb;

// In the order of --help.
std::span<const Command* const> commands() {
  static constexpr std::array table{&kDevices, &kSpace,  &kInspect, &kTune,   &kVerify,
                                    &kBench,   &kReport, &kDb,      &kCompile};
  return table;
}

}  // namespace rnntune::tuner
