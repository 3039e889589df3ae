// SPDX-License-Identifier: Apache-2.0
#include "tuner/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tuner/measure/measure.hpp"

namespace rnntune::tuner {
namespace {

constexpr int kBarWidth = 24;

std::size_t columns() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string bar(double done) {
  const int full = static_cast<int>(done * kBarWidth);
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(kBarWidth - full), '.') + "]";
}

}  // namespace

Progress::Progress(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() { clear(); }

void Progress::show(const std::string& label, double done, const std::string& detail) {
  if (quiet_ || !terminal_) return;
  const double now = steady_clock().now_us();
  if (label != label_) {
    label_ = label;
    start_us_ = now;
  }
  done = std::clamp(done, 0.0, 1.0);
  std::string eta = "--:--";
  if (done > 0.01) {
    const int left = static_cast<int>((now - start_us_) * 1e-6 * (1 - done) / done);
    char text[32];
    std::snprintf(text, sizeof text, "%02d:%02d", left / 60, left % 60);
    eta = text;
  }
  std::string line = bar(done) + " ETA " + eta + "  " + label + "  " + detail;
  if (line.size() >= columns()) line.resize(columns() - 1);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

void Progress::say(const std::string& line) {
  if (quiet_ || line.empty()) return;
  clear();
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace rnntune::tuner
