// SPDX-License-Identifier: Apache-2.0
// A line on a terminal that says how far the work is; nothing where stderr is no terminal.
#pragma once

#include <string>

namespace rnntune::tuner {

class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();

  // `done` is the share of the work, 0 to 1; the time left is extrapolated from the start of
  // `label`.
  void show(const std::string& label, double done, const std::string& detail);
  void clear();

  // A line that stays, to stderr, above the progress; nothing when quiet or empty.
  void say(const std::string& line);

 private:
  bool quiet_;
  bool shown_ = false;
  bool terminal_;
  std::string label_;
  double start_us_ = 0;
};

}  // namespace rnntune::tuner
