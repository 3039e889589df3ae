// SPDX-License-Identifier: Apache-2.0
// The race checker. A kernel whose translation unit is compiled with -fsanitize=thread, in a
// program that is linked without it and with the library rnntune_simt_race, has every access
// checked: two threads, one place, at least one write, and no barrier between is an error of the
// launch that names both source lines (with -g and addr2line at hand) - whether or not it did harm
// in the order that was run. It sees
//
//   - races within a block, by byte, in shared and global memory;
//   - races between blocks, by byte, in global memory, which only a grid barrier orders;
//   - an atomic access against a plain one.
//
// With LaunchOptions::why_not_memory it also ends a launch before an access to other memory than
// that allows, shared memory and constants of the program aside.
//
// __syncwarp orders the lanes of a warp, shuffles and votes order nothing. Taken for ordered, and
// so missed, are: lanes of one warp that met in different numbers of __syncwarp; and what flags in
// memory would order is reported.
#pragma once

#include <cstddef>

namespace rnntune::simt {

// What the emulator tells the checker; null without one.
struct RaceHooks {
  void (*forget)(const void* memory, std::size_t bytes) = nullptr;  // begins a new life
  void (*atomic)(const void* at, std::size_t bytes, const void* pc) = nullptr;
};
extern constinit RaceHooks race_hooks;

}  // namespace rnntune::simt
