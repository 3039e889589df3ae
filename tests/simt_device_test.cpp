// SPDX-License-Identifier: Apache-2.0
// The emulated device does what its interface says, and tells of plans that do not keep to it.
#include <cmath>
#include <limits>

#include "simt/sanitizers.hpp"
#include "tests/simt_device_fixture.hpp"

namespace rnntune::simt {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kRing = "rnntune::cuda::ring<rnntune::cuda::Fault::none>";

// A launch whose work fails: a grid barrier that the launch does not allow for.
Status faulty_launch(gpu::GpuDevice& device, Stream stream = nullptr) {
  const cuda::RingArguments arguments{nullptr, nullptr, nullptr, 0, 1};
  return device.launch(*kernel(device, kRing), {}, &arguments, sizeof arguments, stream);
}

TEST(SimtDeviceTest, SaysWhatItIs) {
  const auto opened = open_simt();
  ASSERT_OK(opened);
  const DeviceInfo& info = (*opened)->info();
  EXPECT_EQ(info.backend, "simt");
  EXPECT_THAT(info.key, StartsWith("simt;compute_capability=9.0;"));
  EXPECT_EQ(gpu::gpu(**opened).limits().compute_capability, 90);
  EXPECT_EQ(info.key, open({.seed = 7})->info().key);
}

TEST(SimtDeviceTest, FreshMemoryIsAlignedAndNotANumber) {
  const auto device = open();
  const Floats fresh(*device, 33);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(fresh.data) % 256, 0u);
  for (const float value : fresh.read()) EXPECT_TRUE(std::isnan(value));
}

TEST(SimtDeviceTest, MemoryHasALimit) {
  const auto device = open({.memory_bytes = 1000});
  const Result<void*> most = device->allocate(600);
  ASSERT_OK(most);
  const Result<void*> more = device->allocate(401);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(more.error().message, "allocate: expected at most 400 bytes, what is free, got 401");
  EXPECT_FALSE(device->allocate(std::numeric_limits<std::size_t>::max()).ok());
  device->release(*most);
  const Result<void*> again = device->allocate(1000), none = device->allocate(0);
  EXPECT_OK(again);
  EXPECT_OK(none);
  device->release(*again);
  device->release(*none);
}

TEST(SimtDeviceTest, KnowsItsMemory) {
  const auto device = open();
  const Floats memory(*device, 10);
  const float host = 0;
  EXPECT_EQ(device->why_not_memory(memory.data, 40), "");
  EXPECT_EQ(device->why_not_memory(memory.data + 9, 4), "");
  EXPECT_EQ(device->why_not_memory(&host, 0), "");
  EXPECT_EQ(device->why_not_memory(memory.data + 8, 9), "ends after 8 bytes, expected 9");
  for (const float* foreign :
       std::initializer_list<const float*>{&host, nullptr, memory.data + 10}) {
    EXPECT_EQ(device->why_not_memory(foreign, 1), "is not memory of the device");
  }
}

TEST(SimtDeviceTest, CopiesStayWithinOneAllocation) {
  const auto device = open();
  const Floats a(*device, 10), b(*device, 20);
  float host[20] = {};
  EXPECT_EQ(message(device->copy(a.data, b.data, 44, nullptr)),
            "copy of 44 bytes: to: ends after 40 bytes, expected 44");
  EXPECT_EQ(message(device->copy(b.data, a.data + 1, 40, nullptr)),
            "copy of 40 bytes: from: ends after 36 bytes, expected 40");
  EXPECT_EQ(message(device->copy(b.data, host, 4, nullptr)),
            "copy of 4 bytes: from: is not memory of the device");
  EXPECT_EQ(message(device->to_device(a.data, host, 41)),
            "copy to the device of 41 bytes: device: ends after 40 bytes, expected 41");
  EXPECT_THAT(message(device->to_device(host, host, 4)), HasSubstr("device: is not memory of"));
  EXPECT_THAT(message(device->to_host(host, host + 1, 4)), HasSubstr("device: is not memory of"));
  EXPECT_THAT(message(device->fill(a.data - 1, 0, 8)), HasSubstr("device: is not memory of"));
  EXPECT_OK(device->copy(b.data + 10, a.data, 40, nullptr));
  EXPECT_OK(device->synchronize());
}

TEST(SimtDeviceTest, WorkIsDeferredAndArgumentsAreCopied) {
  const auto device = open();
  std::vector<float> host(8, 1.0f);
  const Floats x(*device, host), y(*device, host);
  ASSERT_OK(device->to_device(x.data, host.data(), 32));
  {
    cuda::ScaleArguments arguments{x.data, y.data, 2.0f, 8};
    const auto scale = kernel(*device, "rnntune::cuda::scale_add");
    ASSERT_OK(device->launch(*scale, {.block = {32}}, &arguments, sizeof arguments, nullptr));
    arguments = {};
    host.assign(8, 50.0f);
    EXPECT_EQ(y.data[0], 1.0f) << "ran at once";
  }
  EXPECT_THAT(y.read(), Each(3.0f));
}

TEST(SimtDeviceTest, AFaultIsTheErrorOfALaterCallOnce) {
  for (const std::uint64_t seed : {0, 1}) {
    const auto device = open({.seed = seed});
    const Floats x(*device, std::vector<float>(4, 1.0f)), y(*device, std::vector<float>(4, 1.0f));
    ASSERT_OK(faulty_launch(*device));
    ASSERT_OK(add(*device, x, y, 1.0f, nullptr));
    const Status fault = device->synchronize();
    EXPECT_THAT(message(fault), AllOf(StartsWith(std::string("launch of ") + kRing + ": "),
                                      HasSubstr("in a launch that is not cooperative")));
    EXPECT_THAT(y.read(), Each(1.0f)) << "what was queued behind it is dropped";
    ASSERT_OK(add(*device, x, y, 1.0f, nullptr));
    EXPECT_THAT(y.read(), Each(2.0f));
    // Also where nothing asks for the work itself.
    const Stream other = *device->create_stream();
    ASSERT_OK(faulty_launch(*device, other));
    device->destroy_stream(other);
    EXPECT_THAT(message(device->fill(y.data, 0, 4)), HasSubstr("not cooperative"));
    EXPECT_OK(device->fill(y.data, 0, 4));
  }
}

TEST(SimtDeviceTest, OnlyAllocationsAreReleased) {
  const auto device = open();
  const Floats memory(*device, 4);
  device->release(nullptr);
  EXPECT_OK(device->synchronize());
  device->release(memory.data + 1);
  EXPECT_EQ(message(device->synchronize()), "release: is no allocation of the device");
  const Floats source(*device, std::vector<float>(4, 5.0f));
  {
    const Floats to(*device, 4);
    ASSERT_OK(device->copy(to.data, source.data, 16, nullptr));
  }
  EXPECT_OK(device->synchronize()) << "release waits for the work";
}

// The address sanitizer ends the process at the access; else the guards tell afterwards.
TEST(SimtDeviceTest, AKernelThatLeavesItsMemory) {
  const auto device = open();
  const Floats x(*device, std::vector<float>(8, 1.0f)), y(*device, std::vector<float>(6, 1.0f));
  const auto run = [&] {
    EXPECT_OK(add(*device, x, y, 1.0f, nullptr));
    return message(device->synchronize());
  };
#if defined(RNNTUNE_SIMT_ADDRESS_SANITIZER)
  EXPECT_DEATH(run(), "heap-buffer-overflow");
#else
  EXPECT_EQ(run(),
            "launch of rnntune::cuda::scale_add: overrun of device memory of 24 bytes: byte 24 was "
            "written");
  EXPECT_OK(device->synchronize());
#endif
}

TEST(SimtDeviceTest, NamesAnUnknownKernel) {
  const auto device = open();
  const gpu::KernelId ids[] = {{"simt_kernels.cuh", kRing},
                               {"simt_kernels.cuh", "rnntune::cuda::ring<3>"}};
  EXPECT_THAT(message(device->build(ids)),
              StartsWith("kernel rnntune::cuda::ring<3> of simt_kernels.cuh: is not among the "));
  const gpu::KernelId spaced{"simt_kernels.cuh",
                             "rnntune::cuda::tiled_gemm<8,rnntune::cuda::Fault::none>"};
  const auto built = device->build({&spaced, 1});
  ASSERT_OK(built);
  EXPECT_THAT(built->front()->id().expression, StartsWith("rnntune::cuda::tiled_gemm<8"));
}

TEST(SimtDeviceTest, RefusesAnImpossibleLaunch) {
  const auto device = open();
  const auto ring = kernel(*device, kRing);
  const cuda::RingArguments arguments{};
  const struct {
    gpu::LaunchShape shape;
    const char* says;
  } rows[] = {{{.grid = {1, 65536}}, "grid y: expected 1 to 65535, got 65536"},
              {{.grid = {0}}, "grid x: expected 1 to 2147483647, got 0"},
              {{.block = {1025}}, "block x: expected 1 to 1024, got 1025"},
              {{.block = {64, 32}}, "threads of a block: expected 1 to 1024, got 2048"},
              {{.shared_bytes = 232449}, "expected 0 to 232448, got 232449"},
              {{.grid = {2}, .cluster = {2}}, "cluster"},
              {{.grid = {17}, .block = {1024}, .cooperative = true},
               "expected at most 16 blocks (2 on each of 8 multiprocessors), got 17 x 1 x 1"},
              {{.grid = {9}, .shared_bytes = 120 << 10, .cooperative = true}, "at most 8 blocks"}};
  for (const auto& row : rows) {
    EXPECT_THAT(message(device->launch(*ring, row.shape, &arguments, sizeof arguments, nullptr)),
                AllOf(StartsWith("launch"), HasSubstr(row.says)));
  }
  EXPECT_EQ(message(device->launch(*ring, {}, &arguments, 8, nullptr)),
            std::string("launch of ") + kRing + ": arguments: expected " +
                std::to_string(sizeof arguments) + " bytes, got 8");
  EXPECT_OK(device->synchronize());
}

TEST(SimtDeviceTest, ACooperativeLaunchOfAllThatFits) {
  const auto device = open({.seed = 3});
  constexpr int kCount = 1000;
  void* const memory = *device->allocate((2 * kCount + 1) * sizeof(unsigned));
  auto* const words = static_cast<unsigned*>(memory);
  const std::vector<unsigned> ones(kCount, 1);
  ASSERT_OK(device->to_device(words, ones.data(), kCount * sizeof(unsigned)));
  ASSERT_OK(device->fill(words + 2 * kCount, 0, sizeof(unsigned)));
  const cuda::RingArguments arguments{words, words + kCount, words + 2 * kCount, kCount, 4};
  ASSERT_OK(device->launch(*kernel(*device, kRing),
                           {.grid = {16}, .block = {1024}, .cooperative = true}, &arguments,
                           sizeof arguments, nullptr));
  std::vector<unsigned> result(kCount);
  ASSERT_OK(device->to_host(result.data(), words, kCount * sizeof(unsigned)));
  EXPECT_THAT(result, Each(16u));
  device->release(memory);
}

#if defined(RNNTUNE_SIMT_RACE_CHECKER)

TEST(SimtDeviceTest, CheckedKernelsTellOfRaces) {
  for (const bool checked : {false, true}) {
    const auto device = open({.seed = 1, .checked = checked});
    void* const memory = *device->allocate(32 * sizeof(int));
    const cuda::WordArguments arguments{static_cast<int*>(memory)};
    ASSERT_OK(device->launch(*kernel(*device, "rnntune::cuda::double_write"), {.block = {64}},
                             &arguments, sizeof arguments, nullptr));
    EXPECT_THAT(message(device->synchronize()),
                HasSubstr(checked ? "double_write: race: write by thread " : "ok"));
    device->release(memory);
  }
}

// Before they are touched, by thread and line: null, memory of the host, and what is one too far.
TEST(SimtDeviceTest, CheckedKernelsTellOfMemoryThatIsNotTheDevices) {
  const auto device = open({.seed = 1, .checked = true});
  const Floats x(*device, std::vector<float>(8, 1.0f)), y(*device, std::vector<float>(8, 1.0f));
  std::vector<float> host(8);
  const auto scale = kernel(*device, "rnntune::cuda::scale_add");
  const cuda::ScaleArguments rows[] = {
      {x.data, nullptr, 1, 8}, {host.data(), y.data, 1, 8}, {x.data + 4, y.data, 1, 8}};
  for (const cuda::ScaleArguments& arguments : rows) {
    ASSERT_OK(device->launch(*scale, {.block = {32}}, &arguments, sizeof arguments, nullptr));
    EXPECT_THAT(message(device->synchronize()),
                AllOf(StartsWith("launch of rnntune::cuda::scale_add: read by thread "),
                      HasSubstr(" of block 0 at simt_kernels.cuh:"),
                      HasSubstr("bytes: is not memory of the device")));
  }
  ASSERT_OK(add(*device, x, y, 1, nullptr));
  EXPECT_THAT(y.read(), Each(2.0f));
}

// The text is in the program twice: where both were one function, one of them would be the wrong
// one.
TEST(SimtDeviceTest, BothCopiesOfEveryKernelAreThere) {
  const struct {
    std::span<const KernelEntry> plain, checked;
  } registries[] = {{plain_kernels(), checked_kernels()},
                    {plain_test_kernels(), checked_test_kernels()}};
  for (const auto& [plain, checked] : registries) {
    ASSERT_EQ(plain.size(), checked.size());
    ASSERT_FALSE(plain.empty());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_STREQ(plain[i].expression, checked[i].expression);
      EXPECT_NE(plain[i].kernel, checked[i].kernel)
          << plain[i].expression << " is not in inline namespace RNNTUNE_DEVICE_TEXT";
    }
  }
  EXPECT_OK(open_simt({.checked = true}));
}

#else

TEST(SimtDeviceTest, CheckedKernelsTellOfRaces) {
  EXPECT_THAT(message(open_simt({.checked = true})), HasSubstr("which this build's sanitizers"));
}

#endif

}  // namespace
}  // namespace rnntune::simt
