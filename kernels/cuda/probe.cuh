// SPDX-License-Identifier: Apache-2.0
// What a launch and a grid barrier cost. A barrier's cost is the difference of two numbers of
// rounds, so that launch and warm-up drop out. The checked kernel proves that the barrier holds.
//
// Block: kProbeThreads threads. Grid: as many blocks as are resident at once, cooperative.
#pragma once

#include "portable.cuh"
#include "probe_arguments.hpp"

namespace rnntune::cuda {
inline namespace RNNTUNE_DEVICE_TEXT {

__global__ void __launch_bounds__(kProbeThreads) probe_empty(BarrierArguments) {}

__global__ void __launch_bounds__(kProbeThreads) probe_grid_barriers(BarrierArguments p) {
  for (int round = 0; round < p.rounds; ++round) grid_barrier(p.state);
}

// Every block counts itself; behind the barrier no block may be missing, before the next one none
// may have counted again.
__global__ void __launch_bounds__(kProbeThreads) probe_grid_checked(BarrierArguments p) {
  const bool first = threadIdx.x == 0;
  for (int round = 1; round <= p.rounds; ++round) {
    if (first) atomicAdd(p.count, 1u);
    grid_barrier(p.state);
    const unsigned expected = static_cast<unsigned>(round) * gridDim.x;
    if (first && atomicAdd(p.count, 0u) != expected) atomicAdd(p.errors, 1u);
    grid_barrier(p.state);
  }
}

}  // namespace RNNTUNE_DEVICE_TEXT
}  // namespace rnntune::cuda
