// SPDX-License-Identifier: Apache-2.0
// Runs CUDA device text on the host: one fiber per CUDA thread, all on the calling OS thread.
//
// The blocks of a launch run one after the other; those of a cooperative launch together, so that
// they can meet at a grid barrier. One OS thread for all makes a run depend on its seed alone, and
// a deadlock of the grid visible as that no thread can run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "device/gpu.hpp"

namespace rnntune::simt {

inline constexpr unsigned kMaxBlockThreads = 1024;
inline constexpr unsigned kMaxSharedBytes = 227 * 1024;       // of a block, static and dynamic
inline constexpr unsigned kMaxStaticSharedBytes = 48 * 1024;  // of a block
// Each has a stack: 64 KiB of address space, of which it touches a few.
inline constexpr unsigned kMaxCooperativeThreads = 16384;

class Profile;

struct LaunchOptions {
  // 0: threads run in order of their numbers. Else threads, warps and blocks run in a random order
  // that the seed determines.
  std::uint64_t seed = 0;
  // Why a kernel may not touch these bytes of global memory; empty when it may. Asked by the race
  // checker only, and before the access: what is refused ends the launch. Null: anything goes.
  std::function<std::string(const void* at, std::size_t bytes)> why_not_memory{};
  // Instead of races a watched kernel's accesses are counted here.
  Profile* profile = nullptr;
  // Which blocks run of a launch that is not cooperative; null: all.
  std::function<bool(std::uint64_t block)> runs_block{};
};

// An impossible geometry is an error that names limit and value.
Status check_geometry(const gpu::LaunchShape& shape);

// Calls `body`, which calls the kernel, once per CUDA thread. The error says which threads were
// where: a deadlock, a divergent barrier, an overrun of shared memory, and in an instrumented
// kernel (race.hpp) the races. What a failed launch was to compute is undefined; the threads that
// had not ended are given up without unwinding, so device text must own nothing. `body` must not
// throw.
Status launch(const gpu::LaunchShape& shape, const std::function<void()>& body,
              const LaunchOptions& options = {});

}  // namespace rnntune::simt
