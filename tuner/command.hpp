// SPDX-License-Identifier: Apache-2.0
// The command table of `rnntune`: one row for each subcommand. A new subcommand is one file that
// defines its row, and the row's name in commands.cpp.
#pragma once

#include <functional>
#include <span>
#include <stdexcept>
#include <string>

namespace CLI {
class App;
}

namespace rnntune::tuner {

enum ExitCode : int {
  kFine = 0,
  kCheckFailed = 1,  // wrong result, regression, no valid config
  kBadInput = 2,
  kInconclusive = 3,  // too noisy, not comparable, nothing to compare with
  kInterrupted = 130,
};

// Bad usage, input or environment: thrown anywhere in a subcommand, caught once in main, exit code
// 2. The message names the option or file, what was expected and what came.
class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Parsed options in, exit code out.
using Run = std::function<int()>;

struct Command {
  const char* name;
  const char* help;
  // Adds the subcommand's options to `app`; what it returns runs after parsing. Must not do any
  // work itself: every setup runs at every start, also for --help.
  Run (*setup)(CLI::App& app);
  bool internal = false;  // run by rnntune itself, not listed
};

std::span<const Command* const> commands();

}  // namespace rnntune::tuner
