// SPDX-License-Identifier: Apache-2.0
// What device text on the host calls: who it is, and what it may wait for. The functions are in the
// library, so that an instrumented kernel (race.hpp) sees its own accesses only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/gpu.hpp"

namespace rnntune::simt {

// Not watched by the race checker: reads of the emulator's own state.
#define RNNTUNE_SIMT_UNWATCHED __attribute__((no_sanitize_thread))

struct Indices {
  gpu::Extent3 thread, block, block_dim, grid_dim;
};

// The CUDA thread that runs on this OS thread; null outside a launch.
extern constinit thread_local Indices* current;

RNNTUNE_SIMT_UNWATCHED inline gpu::Extent3 thread_index() { return current->thread; }
RNNTUNE_SIMT_UNWATCHED inline gpu::Extent3 block_index() { return current->block; }
RNNTUNE_SIMT_UNWATCHED inline gpu::Extent3 block_dim() { return current->block_dim; }
RNNTUNE_SIMT_UNWATCHED inline gpu::Extent3 grid_dim() { return current->grid_dim; }

// A place in device text, for messages.
struct Site {
  const char* operation = "";
  const char* file = "";
  int line = 0;
};

void block_barrier(const Site& site);
void grid_barrier(const Site& site);
// Lets the others of the launch run, for loops that wait for memory to change.
void pause();

enum class WarpOperation : std::uint8_t { sync, shuffle, ballot };

// Number of the thread in its warp.
int lane();
// Meets the lanes of `mask`. A shuffle returns the value of lane `source`, or poison where that
// lane takes no part; a ballot one bit per lane whose value is not zero.
std::uint64_t warp_meet(WarpOperation operation, unsigned mask, std::uint64_t value, int source,
                        const Site& site);

// The block's object of a declaration, which `key` stands for; aligned to 128 bytes.
void* shared_object(const void* key, const char* name, std::size_t bytes);
// The dynamic shared memory of the block.
void* dynamic_shared();

// The old value.
float atomic_add(float* at, float value);
int atomic_add(int* at, int value);
unsigned atomic_add(unsigned* at, unsigned value);
unsigned long long atomic_add(unsigned long long* at, unsigned long long value);
void fence();

}  // namespace rnntune::simt
