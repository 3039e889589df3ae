// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels that measure a GPU itself; no plan uses them.
#pragma once

namespace rnntune::cuda {

inline constexpr int kProbeThreads = 256;

struct BarrierArguments {
  unsigned* state;   // one word, zero before the launch
  unsigned* count;   // one word, zero before the launch
  unsigned* errors;  // added to
  int rounds;
};

// Each block moves `vectors` vectors of 16 bytes between registers and the shared memory of the
// block `distance` ranks on in its cluster, `rounds` times.
struct RemoteArguments {
  unsigned* errors;
  int rounds;
  int vectors;
  int distance;
};

}  // namespace rnntune::cuda
