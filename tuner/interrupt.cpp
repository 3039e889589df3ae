// SPDX-License-Identifier: Apache-2.0
#include "tuner/interrupt.hpp"

#include <atomic>
#include <csignal>

namespace rnntune::tuner {
namespace {

std::atomic<bool> asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void ask(int) { asked = true; }

}  // namespace

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = ask;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return asked; }

}  // namespace rnntune::tuner
