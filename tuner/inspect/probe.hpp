// SPDX-License-Identifier: Apache-2.0
// What a GPU's building blocks cost, as far as the choice of kernels depends on it: barriers,
// distributed shared memory, launches, a time step, and what cuDNN serves.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tuner/measure/measure.hpp"
#include "tuner/options.hpp"

namespace rnntune::tuner {

struct Answer {
  std::string question;  // "grid_barrier"
  std::string of;        // "132 blocks of 256 threads"
  double value = 0;      // in `unit`
  std::string unit;      // empty: the answer is the text
  std::string text{};
  bool failed = false;
};

// Answers every question of the device that options.filter finds, and goes on where one fails.
// True when none failed. The emulator answers what it can launch; its times are the host's. Throws
// BadInput for no such device, and a filter that finds nothing.
bool probe_gpu(const Options& options, const std::function<void(const Answer&)>& tell);

// Of a device that has the kernels of all_probe_texts(), timed by that clock.
bool probe_gpu(const Options& options, const std::shared_ptr<Device>& device,
               const std::shared_ptr<Clock>& clock, const std::function<void(const Answer&)>& tell);

}  // namespace rnntune::tuner
