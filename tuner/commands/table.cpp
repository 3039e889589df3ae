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
extern const Command kMeet;

// In the order of --help.
std::span<const Command* const> commands() {
  static constexpr std::array table{&kDevices, &kSpace,  &kInspect, &kTune,    &kVerify,
                                    &kBench,   &kReport, &kDb,      &kCompile, &kMeet};
  return table;
}

}  // namespace rnntune::tuner
