// SPDX-License-Identifier: Apache-2.0
// What both layouts of the `cell` variant share: the choice that a config makes, and what plans
// hand to kernels in either of them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rnntune::cpu {

struct CellChoice {
  int threads = 1;
  bool split_batch = false;   // false: threads share hidden units, and meet at every time step
  std::int64_t chunk = 0;     // time steps of one input GEMM; 0: all, 1: fused into the recurrence
  int columns = 2;            // vectors of a backward panel
  int rows = 0;               // most rows of a forward register tile; 0: as many as registers allow
  bool ahead = true;          // prefetch the next panel's weights
  bool recompute = false;     // keep c alone, compute the gates again in backward_data
  std::int64_t l2_bytes = 0;  // of a core; 0: unknown
};

enum class Epilogue {
  none,       // store the pre-activations
  train,      // store activated gates, c, tanh_c, y
  infer,      // store c, y
  recompute,  // store activated gates and, from the c that is there, tanh_c
};

// Memory to bring closer while a panel is computed; usually the next panel's weights.
struct Ahead {
  const float* at = nullptr;
  std::int64_t floats = 0;
};

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// [0, vectors) cut into `count` panels, as even as possible. Wide and narrow ones take turns, so
// that equal numbers of neighbouring panels have equal numbers of vectors, to within one.
struct Panels {
  std::int64_t vectors = 0, count = 0;

  std::int64_t first(std::int64_t panel) const {
    return vectors / count * panel + vectors % count * panel / count;
  }
  int width(std::int64_t panel) const { return static_cast<int>(first(panel + 1) - first(panel)); }
  int widest() const { return static_cast<int>(ceil_div(vectors, count)); }
};

// Rows of activations that a weight gradient packs at a time: a panel of them stays in L2. Fewer
// would stay in L1, but dW is read and written once for each of these passes (ptb_medium, one
// thread, fraction of the peak: 64 rows .82, 128 .84, 256 .89, 512 .90).
inline constexpr std::int64_t kPackRows = 256;

// Time steps that inference computes the input GEMM of at a time.
inline constexpr std::int64_t kInferenceChunk = 32;

}  // namespace rnntune::cpu
