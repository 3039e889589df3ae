// SPDX-License-Identifier: Apache-2.0
// What a config would do on a GPU that need not be here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda/compile_all.hpp"
#include "plan.hpp"
#include "rnntune/rnn.hpp"
#include "simt/recorder.hpp"

namespace rnntune::tuner {

struct InspectedGpu {
  DeviceInfo info;
  gpu::Limits limits;
  std::shared_ptr<Device> device{};  // where it is one that is here
};

// What is known of a plan on any device.
struct InspectedPlan {
  Problem problem;
  Explanation choice;
  PlanSizes sizes{};
};

struct Inspection {
  InspectedPlan plan;
  // Whether the sizes hold what the library of the products asks for: only a real device knows.
  bool with_products = false;
  simt::Recording recording{};             // of one training step
  std::vector<cuda::Compiled> compiled{};  // by kernel of the recording
  std::string not_compiled{};              // why that is empty
};

// Kernels are compiled by so many threads; 0: every core there is.
Result<Inspection> inspect(const Problem& problem, const Explanation& choice,
                           const InspectedGpu& gpu, int threads);

// One training step with everything that a call may be given, queued on a device of its own memory
// whose values are left as they are.
Status run_step(Rnn& rnn, Device& device);

// A config on any device, as a plan that does not run.
Result<Rnn> make_rnn(const Problem& problem, const Explanation& choice,
                     std::shared_ptr<Device> device);

}  // namespace rnntune::tuner
