// SPDX-License-Identifier: Apache-2.0
// Running the program once more as a process of its own, and what became of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rnntune/result.hpp"

namespace rnntune::tuner {

// How a process ended.
struct Ending {
  int exit_code = 0;  // -1: it did not exit by itself
  int signal = 0;     // that ended it; 0: none
  bool hung = false;  // ended by us, since it had not said a word for too long
  std::string words;  // the last line that it wrote to stderr

  bool fine() const { return exit_code == 0; }
  // "died of signal 6 (Aborted): corrupted size vs. prev_size"
  std::string text() const;
};

// Runs this program with these arguments. Each line of its stdout is handed to `line` as it comes.
// Interrupts are passed on. Without a line for `silence_s` seconds it is killed. An error: it could
// not be started.
Result<Ending> run_apart(const std::vector<std::string>& arguments, double silence_s,
                         const std::function<void(const std::string&)>& line);

// To be called first in such a process: it ends when the one that started it does.
void end_with_parent();

}  // namespace rnntune::tuner
