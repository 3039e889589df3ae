// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM: the first asks the work to end after the current evaluation and to save; a
// second one ends the process at once.
#pragma once

namespace rnntune::tuner {

void watch_interrupts();
bool interrupted();

}  // namespace rnntune::tuner
