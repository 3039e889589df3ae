// SPDX-License-Identifier: Apache-2.0
// The emulator computes what plain loops compute, in every order of the threads, and reports
// kernels that a GPU would hang on or compute anything for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "simt/launch.hpp"
#include "simt/sanitizers.hpp"
#include "tests/simt_kernels.cuh"

namespace rnntune::simt {
namespace {

using cuda::Fault;
using testing::AllOf;
using testing::HasSubstr;

// Small whole numbers: their sums are exact in any order.
std::vector<float> whole_numbers(std::size_t count, std::uint32_t state) {
  std::vector<float> values(count);
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 28) - 8.0f;
  }
  return values;
}

std::string message(const Status& status) { return status.ok() ? "ok" : status.error().message; }

class OrderTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  LaunchOptions options() const { return {.seed = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Seeds, OrderTest, testing::Values(0, 1, 2, 3));

template <Fault kFault>
Status run_gemm(const LaunchOptions& options, std::vector<float>& c) {
  constexpr int kM = 37, kN = 50, kK = 45, kTile = 16;
  const std::vector<float> a = whole_numbers(kM * kK, 1), b = whole_numbers(kK * kN, 2);
  c.assign(kM * kN, 0.0f);
  const cuda::GemmArguments p{a.data(), b.data(), c.data(), kM, kN, kK};
  Status status = launch(
      {.grid = {(kN + kTile - 1) / kTile, (kM + kTile - 1) / kTile}, .block = {kTile, kTile}},
      [&] { cuda::tiled_gemm<kTile, kFault>(p); }, options);
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      for (int k = 0; k < kK; ++k) c[i * kN + j] -= a[i * kK + k] * b[k * kN + j];
    }
  }
  return status;  // and in c what is wrong
}

TEST_P(OrderTest, Gemm) {
  std::vector<float> error;
  const Status status = run_gemm<Fault::none>(options(), error);
  ASSERT_TRUE(status.ok()) << message(status);
  EXPECT_THAT(error, testing::Each(0.0f));
}

TEST_P(OrderTest, BlockSum) {
  const std::vector<float> x = whole_numbers(10007, 3);
  float expected = 1, sum = 1;
  for (float value : x) expected += value;
  const cuda::SumArguments p{x.data(), &sum, static_cast<int>(x.size())};
  const Status status = launch(
      {.grid = {5}, .block = {96}}, [&] { cuda::block_sum<false>(p); }, options());
  ASSERT_TRUE(status.ok()) << message(status);
  EXPECT_EQ(sum, expected);
}

TEST_P(OrderTest, ElementwiseWithTails) {
  for (std::size_t n : {1u, 3u, 4u, 127u, 128u, 129u, 1022u}) {
    const std::vector<float> x = whole_numbers(n, 4);
    std::vector<float> y = whole_numbers(n, 5), expected = y;
    for (std::size_t i = 0; i < n; ++i) expected[i] += 3.0f * x[i];
    const cuda::ScaleArguments p{x.data(), y.data(), 3.0f, static_cast<int>(n)};
    const Status status = launch(
        {.grid = {static_cast<unsigned>((n + 127) / 128)}, .block = {32}},
        [&] { cuda::scale_add(p); }, options());
    ASSERT_TRUE(status.ok()) << message(status);
    EXPECT_EQ(y, expected) << n;
  }
}

template <Fault kFault>
Status run_ring(const LaunchOptions& options, bool cooperative, bool* right) {
  constexpr int kCount = 301, kSteps = 6;
  std::vector<unsigned> values(kCount), scratch(kCount);
  for (int i = 0; i < kCount; ++i) values[i] = static_cast<unsigned>(i * i);
  std::vector<unsigned> expected = values;
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<unsigned> old = expected;
    for (int i = 0; i < kCount; ++i) {
      expected[i] = old[(i + 1) % kCount] + old[(i + kCount - 1) % kCount];
    }
  }
  unsigned barrier = 0;
  const cuda::RingArguments p{values.data(), scratch.data(), &barrier, kCount, kSteps};
  Status status = launch(
      {.grid = {4}, .block = {40}, .cooperative = cooperative}, [&] { cuda::ring<kFault>(p); },
      options);
  *right = values == expected;
  return status;
}

TEST_P(OrderTest, CooperativeRing) {
  bool right = false;
  const Status status = run_ring<Fault::none>(options(), true, &right);
  ASSERT_TRUE(status.ok()) << message(status);
  EXPECT_TRUE(right);
}

TEST_P(OrderTest, RingWithoutTheGridBarrierIsWrong) {
  bool right = true;
  const Status status = run_ring<Fault::no_barrier>(options(), true, &right);
  ASSERT_TRUE(status.ok()) << message(status);
  EXPECT_FALSE(right);
}

TEST_P(OrderTest, ReversalInAWarp) {
  std::vector<int> out(64);
  const cuda::WordArguments p{out.data()};
  const Status status = launch(
      {.block = {64}, .shared_bytes = 256}, [&] { cuda::reverse_warp<Fault::none>(p); }, options());
  ASSERT_TRUE(status.ok()) << message(status);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], i ^ 31);
}

// Lane i's results of one operation each, for all 32.
template <class Operation>
std::vector<int> of_lanes(unsigned threads, const LaunchOptions& options, Operation operation) {
  std::vector<int> out(threads);
  const Status status = launch(
      {.block = {threads}},
      [&] {
        const int lane = static_cast<int>(threadIdx.x);
        out[threadIdx.x] = operation(lane);
      },
      options);
  EXPECT_TRUE(status.ok()) << message(status);
  return out;
}

TEST_P(OrderTest, ShufflesAndVotes) {
  constexpr unsigned kAll = 0xffffffffu;
  const auto up = of_lanes(32, options(), [](int i) { return __shfl_up_sync(kAll, i, 3, 8); });
  const auto down = of_lanes(32, options(), [](int i) { return __shfl_down_sync(kAll, i, 3, 8); });
  const auto swap = of_lanes(32, options(), [](int i) { return __shfl_xor_sync(kAll, i, 5); });
  const auto from = of_lanes(32, options(), [](int i) { return __shfl_sync(kAll, i, 2, 16); });
  const auto wide = of_lanes(32, options(), [](int i) {
    return static_cast<int>(__shfl_sync(kAll, double{0.5} + i, 31 - i) * 2);
  });
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(up[i], i % 8 < 3 ? i : i - 3);
    EXPECT_EQ(down[i], i % 8 + 3 >= 8 ? i : i + 3);
    EXPECT_EQ(swap[i], i ^ 5);
    EXPECT_EQ(from[i], i / 16 * 16 + 2);
    EXPECT_EQ(wide[i], 2 * (31 - i) + 1);
  }
  // Halves of a warp on their own, and a warp that is not full.
  const auto halves = of_lanes(32, options(), [](int i) {
    return static_cast<int>(__ballot_sync(i < 16 ? 0xffffu : 0xffff0000u, i % 3 == 0));
  });
  const auto part = of_lanes(20, options(), [](int i) {
    return 4 * __any_sync(kAll, i == 19) + 2 * __all_sync(kAll, i < 20) + __all_sync(kAll, i < 19);
  });
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(static_cast<unsigned>(halves[i]), i < 16 ? 0x9249u : 0x49240000u);
  }
  EXPECT_THAT(part, testing::Each(6));
}

TEST_P(OrderTest, ALaneThatExitedIsWaitedForNoLonger) {
  const auto votes = of_lanes(32, options(), [](int i) {
    if (i >= 24) return -1;
    return static_cast<int>(__ballot_sync(0xffffffffu, 1));
  });
  for (int i = 0; i < 32; ++i) EXPECT_EQ(votes[i], i < 24 ? 0xffffff : -1);
  const auto sums = of_lanes(64, options(), [](int i) {
    if (i >= 40) return -1;
    RNNTUNE_SHARED(count, int);
    if (i == 0) count = 0;
    __syncthreads();
    atomicAdd(&count, 1);
    __syncthreads();
    return count;
  });
  for (int i = 0; i < 64; ++i) EXPECT_EQ(sums[i], i < 40 ? 40 : -1);
}

TEST(SimtTest, OrderDependsOnTheSeedAlone) {
  const auto order = [](std::uint64_t seed) {
    std::vector<int> order;
    EXPECT_TRUE(launch({.grid = {3}, .block = {50}},
                       [&] { order.push_back(static_cast<int>(blockIdx.x * 50 + threadIdx.x)); },
                       {.seed = seed})
                    .ok());
    return order;
  };
  std::vector<int> sorted = order(7);
  EXPECT_EQ(sorted, order(7));
  EXPECT_NE(sorted, order(8));
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, order(0));
}

TEST(SimtTest, FreshSharedMemoryIsPoison) {
  std::vector<int> seen;
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(launch({.grid = {2}, .shared_bytes = 8}, [&] {
                  RNNTUNE_SHARED(one, int);
                  RNNTUNE_DYNAMIC_SHARED(int, two);
                  seen.insert(seen.end(), {one, two[0], two[1]});
                  one = two[0] = two[1] = 0;
                }).ok());
  }
  EXPECT_EQ(seen.size(), 12u);
  EXPECT_THAT(seen, testing::Each(static_cast<int>(0xcdcdcdcd)));
}

TEST_P(OrderTest, WaitingForAnotherThreadsWrite) {
  int flag = 0, seen = 0;
  const Status status = launch(
      {.block = {64}},
      [&] {
        if (threadIdx.x == 0) {
          while (flag != 63) __nanosleep(100);
          seen = flag;
        } else {
          atomicAdd(&flag, 1);
        }
      },
      options());
  ASSERT_TRUE(status.ok()) << message(status);
  EXPECT_EQ(seen, 63);
}

// ---- what must be reported

TEST_P(OrderTest, DivergentBarrier) {
  int first = 0;
  const Status status = launch(
      {.block = {64}},
      [&] {
        if (threadIdx.x < 32) {
          first = __LINE__, __syncthreads();
        } else {
          __syncthreads();
        }
      },
      options());
  EXPECT_THAT(message(status),
              AllOf(HasSubstr("divergent barrier: block (0, 0, 0): threads 0-31 at __syncthreads "
                              "simt_test.cpp:" +
                              std::to_string(first) + "; threads 32-63 at "),
                    HasSubstr("simt_test.cpp:" + std::to_string(first + 2))));
}

TEST_P(OrderTest, DeadlockOfBarrierAndShuffle) {
  const Status status = launch(
      {.grid = {2, 2}, .block = {64}},
      [] {
        if (blockIdx.x == 0 || blockIdx.y == 0) return;
        if (threadIdx.x == 3) {
          __syncthreads();
        } else if (threadIdx.x < 32) {
          __shfl_sync(0xffffffffu, 1, 0);
        }
      },
      options());
  EXPECT_THAT(
      message(status),
      AllOf(HasSubstr("deadlock: block (1, 1, 0): threads 0-2, 4-31 at __shfl_sync "),
            HasSubstr("; thread 3 at __syncthreads "), HasSubstr("; threads 32-63 exited")));
}

TEST_P(OrderTest, GridBarrierThatABlockNeverReaches) {
  const Status status = launch(
      {.grid = {3}, .block = {32}, .cooperative = true},
      [] {
        if (blockIdx.x != 1) cuda::grid_barrier(nullptr);
      },
      options());
  EXPECT_THAT(message(status),
              AllOf(HasSubstr("deadlock: block (0, 0, 0): threads 0-31 at grid_barrier "),
                    HasSubstr("block (1, 0, 0): threads 0-31 exited")));
}

TEST_P(OrderTest, GridBarrierOfALaunchThatIsNotCooperative) {
  bool right = false;
  EXPECT_THAT(message(run_ring<Fault::none>(options(), false, &right)),
              HasSubstr("in a launch that is not cooperative"));
}

TEST_P(OrderTest, DivergentWarpOperations) {
  const Status sites = launch(
      {.block = {32}},
      [] {
        if (threadIdx.x < 16) {
          __syncwarp();
        } else {
          __syncwarp();
        }
      },
      options());
  EXPECT_THAT(message(sites), HasSubstr("lanes of a warp meet in different operations"));
  const Status outside = launch(
      {.block = {32}}, [] { __syncwarp(0xfffeu); }, options());
  EXPECT_THAT(message(outside), HasSubstr("does not name its lane"));
}

// The address sanitizer ends the process; without it the guard behind the tile tells.
TEST_P(OrderTest, OffByOneOfATile) {
  std::vector<float> error;
#if defined(RNNTUNE_SIMT_ADDRESS_SANITIZER)
  EXPECT_DEATH((void)run_gemm<Fault::bound>(options(), error), "heap-buffer-overflow");
#else
  EXPECT_THAT(message(run_gemm<Fault::bound>(options(), error)),
              AllOf(HasSubstr("overrun of shared memory \"b_tile\" of 1024 bytes: byte 1024 was "
                              "written in block ("),
                    HasSubstr("and 4 more")));
#endif
}

TEST(SimtTest, ALaunchAfterAFailedOne) {
  for (int round = 0; round < 20; ++round) {
    EXPECT_FALSE(launch({.block = {1024}}, [] {
                   if (threadIdx.x != 3) __syncthreads();
                   if (threadIdx.x == 3) __syncwarp(8u), cuda::grid_barrier(nullptr);
                 }).ok());
    std::vector<float> error;
    ASSERT_TRUE(run_gemm<Fault::none>({}, error).ok());
    EXPECT_THAT(error, testing::Each(0.0f));
  }
}

TEST(SimtTest, ImpossibleGeometry) {
  const struct {
    gpu::LaunchShape shape;
    const char* expected;
  } cases[] = {
      {{.block = {1025}}, "block.x: expected 1 to 1024, got 1025"},
      {{.block = {32, 33}}, "threads of a block: expected 1 to 1024, got 1056"},
      {{.block = {1, 1, 65}}, "block.z: expected 1 to 64, got 65"},
      {{.block = {0}}, "block.x: expected 1 to 1024, got 0"},
      {{.grid = {1, 65536}}, "grid.y: expected 1 to 65535, got 65536"},
      {{.grid = {1, 1, 70000}}, "grid.z: expected 1 to 65535, got 70000"},
      {{.grid = {0}}, "grid.x: expected 1 to 2147483647, got 0"},
      {{.shared_bytes = 232449},
       "dynamic shared memory in bytes: expected 0 to 232448, got 232449"},
      {{.cluster = {2}}, "blocks of a cluster (none in the emulator): expected 1 to 1, got 2"},
      {{.grid = {132}, .block = {256}, .cooperative = true},
       "threads of a cooperative launch: expected 1 to 16384, got 33792"},
  };
  for (const auto& [shape, expected] : cases) {
    bool ran = false;
    const Status status = launch(shape, [&] { ran = true; });
    EXPECT_THAT(message(status), HasSubstr(expected));
    EXPECT_FALSE(ran);
  }
  EXPECT_TRUE(launch({.grid = {1, 65535}, .block = {1}, .shared_bytes = 232448}, [] {}).ok());
}

TEST(SimtTest, TooMuchStaticSharedMemory) {
  EXPECT_THAT(message(launch({},
                             [] {
                               RNNTUNE_SHARED(big, char[49153]);
                               big[0] = 0;
                             })),
              HasSubstr("static shared memory in bytes, with \"big\": expected at most 49152, got "
                        "49153"));
  EXPECT_THAT(message(launch({.shared_bytes = 232000},
                             [] {
                               RNNTUNE_SHARED(more, char[449]);
                               more[0] = 0;
                             })),
              HasSubstr("expected at most 232448, got 232449"));
}

}  // namespace
}  // namespace rnntune::simt
