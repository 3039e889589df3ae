// SPDX-License-Identifier: Apache-2.0
#include "tests/simt_race_kernels.hpp"

#include <algorithm>
#include <vector>

#include "simt/launch.hpp"
#include "tests/simt_kernels.cuh"

namespace rnntune::simt {
namespace {

template <cuda::Fault kFault>
Status gemm(std::uint64_t seed) {
  constexpr int kM = 20, kN = 12, kK = 19;
  std::vector<float> a(kM * kK, 1.0f), b(kK * kN, 2.0f), c(kM * kN);
  const cuda::GemmArguments p{a.data(), b.data(), c.data(), kM, kN, kK};
  return launch({.grid = {2, 3}, .block = {8, 8}}, [&] { cuda::tiled_gemm<8, kFault>(p); },
                {.seed = seed});
}

template <bool kPlain>
Status sum(std::uint64_t seed) {
  std::vector<float> x(1000, 1.0f);
  float total = 0;
  const cuda::SumArguments p{x.data(), &total, 1000};
  return launch({.grid = {4}, .block = {64}}, [&] { cuda::block_sum<kPlain>(p); }, {.seed = seed});
}

template <cuda::Fault kFault>
Status ring(std::uint64_t seed) {
  std::vector<unsigned> values(100, 1), scratch(100);
  unsigned barrier = 0;
  const cuda::RingArguments p{values.data(), scratch.data(), &barrier, 100, 4};
  return launch({.grid = {2}, .block = {16}, .cooperative = true}, [&] { cuda::ring<kFault>(p); },
                {.seed = seed});
}

template <cuda::Fault kFault>
Status reverse_warp(std::uint64_t seed) {
  std::vector<int> out(64);
  const cuda::WordArguments p{out.data()};
  return launch({.block = {64}, .shared_bytes = 256}, [&] { cuda::reverse_warp<kFault>(p); },
                {.seed = seed});
}

// Twice on the same memory: one launch is ordered before the next.
Status scale_add_twice(std::uint64_t seed) {
  alignas(16) static float x[103], y[103];
  const cuda::ScaleArguments forward{x, y, 2.0f, 103}, back{y, x, 2.0f, 103};
  Status first =
      launch({.grid = {1}, .block = {32}}, [&] { cuda::scale_add(forward); }, {.seed = seed});
  if (!first.ok()) return first;
  return launch({.grid = {1}, .block = {32}}, [&] { cuda::scale_add(back); }, {.seed = seed});
}

Status double_write(std::uint64_t seed) {
  std::vector<int> out(32);
  const cuda::WordArguments p{out.data()};
  return launch({.block = {64}}, [&] { cuda::double_write(p); }, {.seed = seed});
}

Status block_overlap(std::uint64_t seed) {
  std::vector<int> out(32);
  const cuda::WordArguments p{out.data()};
  return launch({.grid = {2}, .block = {32}}, [&] { cuda::block_overlap(p); }, {.seed = seed});
}

Status byte_write(std::uint64_t seed) {
  std::vector<unsigned char> out(99);
  const cuda::ByteArguments p{out.data()};
  return launch({.grid = {3}, .block = {33}}, [&] { cuda::byte_write(p); }, {.seed = seed});
}

}  // namespace

std::span<const RaceCase> race_cases() {
  using cuda::Fault;
  static const std::vector<RaceCase> cases = {
      {"gemm", gemm<Fault::none>, {}, {}},
      {"gemm without the barrier before use",
       gemm<Fault::no_barrier_before_use>,
       {"read by", "write by"},
       {"tile read", "tile write"}},
      {"gemm without the barrier after use",
       gemm<Fault::no_barrier_after_use>,
       {"write by", "read by"},
       {"tile read", "tile write"}},
      {"block sum", sum<false>, {}, {}},
      {"block sum, plain", sum<true>, {"atomic access by"}, {"plain add"}},
      {"ring", ring<Fault::none>, {}, {}},
      {"ring with a barrier of the block only",
       ring<Fault::block_barrier>,
       {"of block 0", "of block 1"},
       {"ring step"}},
      {"reversal in a warp", reverse_warp<Fault::none>, {}, {}},
      {"reversal without __syncwarp",
       reverse_warp<Fault::no_barrier>,
       {"read by", "write by"},
       {"warp read", "warp write"}},
      {"two launches", scale_add_twice, {}, {}},
      {"double write", double_write, {"write by", "after write by"}, {"double write"}},
      {"overlap of blocks",
       block_overlap,
       {"of block 0", "of block 1", "write by"},
       {"block overlap"}},
      {"bytes of a word", byte_write, {}, {}},
  };
  return cases;
}

}  // namespace rnntune::simt
