// SPDX-License-Identifier: Apache-2.0
// What the recording device notes of work that is small enough to count by hand.
#include "simt/recorder.hpp"

#include <cstring>

#include "tests/simt_device_fixture.hpp"

namespace rnntune::simt {
namespace {

#if defined(RNNTUNE_SIMT_RACE_CHECKER)
constexpr bool kWatched = true;
std::span<const KernelEntry> test_kernels() { return checked_test_kernels(); }
#else
constexpr bool kWatched = false;
std::span<const KernelEntry> test_kernels() { return plain_test_kernels(); }
#endif

std::shared_ptr<Recorder> recorder(std::uint64_t most_requests = 100'000) {
  const gpu::Limits limits{90, 132, 1024, 2048, 65536, 227 * 1024, 228 * 1024};
  const auto kernels = test_kernels();
  return open_recorder({.info{}, .limits = limits, .most_requests = most_requests},
                       {kernels.begin(), kernels.end()}, kWatched);
}

float* floats(Recorder& device, std::size_t count) {
  const Result<void*> memory = device.allocate(count * sizeof(float));
  EXPECT_OK(memory);
  return memory.ok() ? static_cast<float*>(*memory) : nullptr;
}

Status scale_add(Recorder& device, const float* x, float* y, int count, unsigned blocks,
                 unsigned threads) {
  const cuda::ScaleArguments arguments{x, y, 2, count};
  return device.launch(*kernel(device, "rnntune::cuda::scale_add"),
                       {.grid = {blocks}, .block = {threads}}, &arguments, sizeof arguments,
                       nullptr);
}

struct Sum {
  std::uint64_t requests = 0, bytes = 0, sectors = 0;
  friend bool operator==(const Sum&, const Sum&) = default;
};
Sum sum_of(const RecordedKernel& kernel) {
  Sum sum;
  for (const MemoryLine& line : kernel.lines) {
    sum.requests += line.requests;
    sum.bytes += line.bytes;
    sum.sectors += line.transactions;
  }
  return sum;
}

TEST(RecorderTest, CountsLaunchesByKernelAndBlock) {
  const auto device = recorder();
  float *const x = floats(*device, 4096), *const y = floats(*device, 4096);
  for (int i = 0; i < 3; ++i) EXPECT_OK(scale_add(*device, x + 8 * i, y, 256, 2, 32));
  EXPECT_OK(scale_add(*device, x, y, 1024, 8, 32));
  EXPECT_OK(scale_add(*device, x, y, 1024, 2, 64));
  const Recording recording = device->recording();
  ASSERT_EQ(recording.kernels.size(), 2u);
  EXPECT_EQ(recording.calls, 5u);
  const RecordedKernel& first = recording.kernels[0];
  EXPECT_EQ(first.kernel.expression, "rnntune::cuda::scale_add");
  EXPECT_EQ(first.launches, 4u);
  EXPECT_EQ(first.grid.x, 8u);
  EXPECT_EQ(first.block.x, 32u);
  EXPECT_EQ(recording.kernels[1].launches, 1u);
  EXPECT_EQ(recording.kernels[1].block.x, 64u);
  if (!kWatched) {
    EXPECT_THAT(first.uncounted, testing::HasSubstr("not watched"));
    EXPECT_TRUE(first.lines.empty());
    GTEST_SKIP() << "accesses: " << first.uncounted;
  }
  EXPECT_EQ(first.counted_share, 1);
  // x and y read, y written; a warp is 128 bytes.
  const std::uint64_t bytes = 3 * sizeof(float) * (3 * 256 + 1024);
  EXPECT_EQ(sum_of(first).bytes, bytes);
  EXPECT_EQ(sum_of(first).sectors, bytes / 32);
}

// Three sectors off, it is the same; half a sector off, it is not.
TEST(RecorderTest, LaunchesOfOneKindDifferByWholeSectors) {
  if (!kWatched) GTEST_SKIP() << "accesses are not watched in this build";
  const auto device = recorder();
  float *const x = floats(*device, 4096), *const y = floats(*device, 4096);
  EXPECT_OK(scale_add(*device, x + 24, y, 32, 1, 32));
  const Sum aligned = sum_of(device->recording().kernels[0]);
  EXPECT_EQ(aligned.sectors, 12u);
  EXPECT_OK(scale_add(*device, x + 4, y, 32, 1, 32));
  EXPECT_EQ(sum_of(device->recording().kernels[0]).sectors, 12u + 13u);
}

TEST(RecorderTest, SomeBlocksStandForAll) {
  if (!kWatched) GTEST_SKIP() << "accesses are not watched in this build";
  constexpr int kCount = 32 * 4000;
  RecordedKernel rows[2];
  for (const bool all : {false, true}) {
    const auto device = recorder(all ? 1'000'000 : 300);
    EXPECT_OK(
        scale_add(*device, floats(*device, kCount), floats(*device, kCount), kCount, 1000, 32));
    rows[all] = device->recording().kernels[0];
  }
  EXPECT_EQ(rows[true].counted_share, 1);
  EXPECT_EQ(rows[false].counted_share, 0.1);
  EXPECT_EQ(sum_of(rows[true]), sum_of(rows[false])) << "all blocks do the same";
}

TEST(RecorderTest, ABlockWithTooMuchToDoIsNotCounted) {
  if (!kWatched) GTEST_SKIP() << "accesses are not watched in this build";
  for (const unsigned blocks : {1u, 3u}) {
    const auto device = recorder(10);
    const int count = 4 * 1024 * static_cast<int>(blocks);
    float* const x = floats(*device, static_cast<std::size_t>(count));
    EXPECT_OK(scale_add(*device, x, x, count, blocks, 1024));
    EXPECT_OK(scale_add(*device, x, x, 32, 1, 32));
    const Recording recording = device->recording();
    EXPECT_EQ(recording.kernels[0].uncounted,
              "a block makes more than 1280 accesses to memory, too many to emulate");
    EXPECT_TRUE(recording.kernels[0].lines.empty());
    EXPECT_EQ(recording.kernels[0].launches, 1u);
    EXPECT_EQ(recording.kernels[1].uncounted, "");
  }
}

TEST(RecorderTest, AGraphCountsByItsLaunches) {
  const auto device = recorder();
  float *const x = floats(*device, 64), *const y = floats(*device, 64);
  const Result<Stream> stream = device->create_stream();
  ASSERT_OK(stream);
  ASSERT_OK(device->begin_capture(*stream));
  EXPECT_OK(scale_add(*device, x, y, 64, 2, 32));
  EXPECT_OK(device->copy(y, x, 100, *stream));
  EXPECT_OK(device->gemm(
      {.m = 4, .n = 2, .k = 8, .a = x, .lda = 4, .b = x, .ldb = 8, .beta = 1, .c = y, .ldc = 4},
      *stream));
  const Result<gpu::Graph> graph = device->end_capture(*stream);
  ASSERT_OK(graph);
  EXPECT_TRUE(device->recording().products.empty()) << "nothing of it has run";
  for (int i = 0; i < 5; ++i) EXPECT_OK(device->launch(*graph, *stream));
  const Recording recording = device->recording();
  EXPECT_EQ(recording.calls, 5u);
  EXPECT_EQ(recording.graphs, 5u);
  EXPECT_EQ(recording.kernels[0].launches, 5u);
  EXPECT_EQ(recording.copies.count, 5u);
  EXPECT_EQ(recording.copies.bytes, 500u);
  ASSERT_EQ(recording.products.size(), 1u);
  EXPECT_EQ(recording.products[0].count, 5u);
  EXPECT_EQ(recording.products[0].flops(), 2 * 4 * 2 * 8);
  EXPECT_EQ(recording.products[0].bytes(), 4 * (4 * 8 + 8 * 2 + 2 * 4 * 2));
}

TEST(RecorderTest, RefusesWhatAGpuWould) {
  const auto device = recorder();
  float* const x = floats(*device, 64);
  EXPECT_THAT(message(device->copy(x + 32, x, 129, nullptr)), testing::HasSubstr("to its end"));
  EXPECT_THAT(message(scale_add(*device, x, x, 64, 1, 2048)), testing::HasSubstr("1024"));
  if (!kWatched) return;
  EXPECT_THAT(message(scale_add(*device, x, x, 65, 1, 32)), testing::HasSubstr("scale_add"));
}

// Memory is address space: far more than any machine has.
TEST(RecorderTest, MemoryCostsNothing) {
  const auto device = recorder();
  const std::size_t bytes = std::size_t{1} << 40;
  const Result<void*> memory = device->allocate(bytes);
  ASSERT_OK(memory);
  EXPECT_EQ(device->why_not_memory(*memory, bytes), "");
  EXPECT_NE(device->why_not_memory(*memory, bytes + 4097), "");
  EXPECT_EQ(static_cast<const char*>(*memory)[bytes - 1], 0);
  device->release(*memory);
  EXPECT_NE(device->why_not_memory(*memory, 1), "");
}

}  // namespace
}  // namespace rnntune::simt
