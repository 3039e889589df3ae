// SPDX-License-Identifier: Apache-2.0
// The CUDA device on a fake driver: what it calls, and how every kind of failure is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "kernels/cuda/device.hpp"
#include "tests/fake_cuda.hpp"

namespace rnntune {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr cuda::KernelText kTexts[] = {{"a.cuh", "text of a"}, {"b.cuh", "text of b"}};
const gpu::KernelId kKernel{"a.cuh", "rnntune::cuda::a<float>"};

class CudaRuntimeTest : public testing::Test {
 protected:
  void SetUp() override { reset_fake_cuda(); }

  std::shared_ptr<gpu::GpuDevice> open() {
    Result<std::shared_ptr<gpu::GpuDevice>> device = cuda::open_cuda(fake_libraries(), {}, kTexts);
    EXPECT_TRUE(device.ok()) << device.error().message;
    return device.ok() ? *device : nullptr;
  }
  static std::string open_error(int ordinal = 0) {
    const auto device = cuda::open_cuda(fake_libraries(), {ordinal, {}, {}}, kTexts);
    return device.ok() ? "it opened" : device.error().message;
  }
  static std::shared_ptr<const gpu::Kernel> build(gpu::GpuDevice& device) {
    const auto kernels = device.build({&kKernel, 1});
    EXPECT_TRUE(kernels.ok()) << kernels.error().message;
    return kernels.ok() ? kernels->front() : nullptr;
  }
};

TEST_F(CudaRuntimeTest, DescribesTheSilicon) {
  fake_cuda().devices = 2;
  const auto device = open();
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.backend, "cuda");
  EXPECT_EQ(info.name, "Fake GPU");
  EXPECT_EQ(info.architecture, "sm_90");
  // Without the driver's version, its name, and bytes that the driver keeps.
  EXPECT_EQ(info.key,
            "cuda;compute_capability=9.0;multiprocessors=132;memory_gib=80;l2_bytes=52428800");
  EXPECT_EQ(info.properties.back(), (std::pair<std::string, std::string>("driver", "13.0")));
  EXPECT_EQ(device->limits().compute_capability, 90);
  EXPECT_EQ(device->limits().shared_bytes_per_block, 227 * 1024);
  const auto list = cuda::list_cuda(fake_driver());
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[1].key, info.key);
  EXPECT_EQ(fake_cuda().count("cuDevicePrimaryCtxRetain"), 1) << "a list makes no context";
}

TEST_F(CudaRuntimeTest, ReleasesTheContext) {
  open();
  EXPECT_EQ(fake_cuda().retained, 0);
}

TEST_F(CudaRuntimeTest, SaysWhyThereIsNoDevice) {
  fake_cuda().devices = 0;
  EXPECT_EQ(open_error(), "the driver sees no CUDA device");
  EXPECT_EQ(cuda::list_cuda(fake_driver()).error().message, "the driver sees no CUDA device");
  fake_cuda().devices = 4;
  EXPECT_EQ(open_error(4), "expected cuda:0 to cuda:3, which is what the driver sees");
  for (const char* call : {"cuInit", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain"}) {
    fake_cuda().failures = {{call, CUDA_ERROR_OUT_OF_MEMORY}};
    EXPECT_THAT(open_error(), StartsWith(call + std::string(": CUDA_ERROR_OUT_OF_MEMORY (as ")));
  }
}

TEST_F(CudaRuntimeTest, MovesMemory) {
  const auto device = open();
  void* const memory = *device->allocate(64);
  void* const other = *device->allocate(0);
  std::vector<unsigned char> host(64), back(64);
  std::iota(host.begin(), host.end(), 1);
  EXPECT_TRUE(device->to_device(memory, host.data(), 64).ok());
  EXPECT_TRUE(device->fill(memory, 0xA5, 4).ok());
  EXPECT_TRUE(device->copy(static_cast<char*>(memory) + 8, memory, 4, nullptr).ok());
  EXPECT_TRUE(device->to_host(back.data(), memory, 64).ok());
  std::memset(host.data(), 0xA5, 4);
  std::memset(host.data() + 8, 0xA5, 4);
  EXPECT_EQ(back, host);
  // Nothing to do is nothing to call.
  EXPECT_TRUE(device->fill(nullptr, 0, 0).ok());
  EXPECT_TRUE(device->to_device(nullptr, nullptr, 0).ok());
  EXPECT_EQ(fake_cuda().count("cuMemsetD8Async"), 1);
  device->release(memory);
  device->release(other);
  device->release(nullptr);
  EXPECT_THAT(fake_cuda().memory, IsEmpty());
}

TEST_F(CudaRuntimeTest, OutOfMemoryNamesTheBytesAndIsNoLoss) {
  const auto device = open();
  fake_cuda().failures = {{"cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY}};
  const auto memory = device->allocate(12345);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(memory.error().message, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (as asked): 12345 bytes");
  fake_cuda().failures.clear();
  const auto again = device->allocate(1);
  ASSERT_TRUE(again.ok());
  device->release(*again);
}

TEST_F(CudaRuntimeTest, LosesTheContextForGood) {
  const auto device = open();
  void* const memory = *device->allocate(16);
  fake_cuda().failures = {{"cuStreamSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS}};
  EXPECT_FALSE(device->synchronize().ok());
  fake_cuda().failures.clear();
  const std::size_t calls = fake_cuda().calls.size();
  for (const Status& status :
       {device->synchronize(), device->fill(memory, 0, 16), device->begin_capture(nullptr)}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message,
              "the device's context is lost to this process since cuStreamSynchronize: "
              "CUDA_ERROR_FAKE (as asked)");
  }
  EXPECT_FALSE(device->allocate(1).ok());
  EXPECT_FALSE(device->build({&kKernel, 1}).ok());
  EXPECT_FALSE(device->gemm({.m = 1, .n = 1, .k = 1, .lda = 1, .ldb = 1, .ldc = 1}).ok());
  EXPECT_THAT(device->why_not_memory(memory, 16), HasSubstr("context is lost"));
  device->release(memory);
  EXPECT_EQ(fake_cuda().calls.size(), calls)
      << "the driver is left alone: " << fake_cuda().calls.back();
}

TEST_F(CudaRuntimeTest, LeavesTheThreadsOwnContext) {
  const auto device = open();
  const CudaDriver driver = fake_driver();
  const auto own = reinterpret_cast<CUcontext>(std::uintptr_t{7});
  driver.cuCtxPushCurrent(own);
  CUcontext now = nullptr;
  EXPECT_TRUE(device->with_context([&] { driver.cuCtxGetCurrent(&now); }).ok());
  EXPECT_NE(now, own);
  EXPECT_NE(now, nullptr);
  driver.cuCtxGetCurrent(&now);
  EXPECT_EQ(now, own);
  driver.cuCtxPopCurrent(&now);
}

TEST_F(CudaRuntimeTest, TellsItsMemoryFromOthers) {
  const auto device = open();
  char* const memory = static_cast<char*>(*device->allocate(100));
  int host = 0;
  EXPECT_EQ(device->why_not_memory(memory, 100), "");
  EXPECT_EQ(device->why_not_memory(memory + 60, 40), "");
  EXPECT_EQ(device->why_not_memory(&host, 0), "");
  EXPECT_EQ(device->why_not_memory(memory + 60, 41), "ends after 40 bytes, expected 41");
  EXPECT_THAT(device->why_not_memory(&host, 4), StartsWith("is not memory of the device"));
  EXPECT_THAT(device->why_not_memory(nullptr, 4), StartsWith("is not memory of the device"));
  device->release(memory);
}

TEST_F(CudaRuntimeTest, BuildsEachKernelOnce) {
  const auto device = open();
  const gpu::KernelId other{"b.cuh", "rnntune::cuda::b<1, 2>"};
  const gpu::KernelId asked[] = {kKernel, other, kKernel};
  const auto first = device->build(asked);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ((*first)[0], (*first)[2]);
  EXPECT_EQ((*first)[1]->id(), other);
  EXPECT_EQ(build(*device), (*first)[0]);
  const std::string options = "--gpu-architecture=sm_90 --std=c++20 --ptxas-options=-v";
  EXPECT_THAT(fake_cuda().compiled,
              testing::UnorderedElementsAre(kKernel.expression + "|" + options,
                                            other.expression + "|" + options));
  EXPECT_EQ(fake_cuda().headers.at("b.cuh"), "text of b");
  EXPECT_EQ(fake_cuda().images.size(), 2u);
  // Every launch may use all the shared memory that the kernel's own leaves.
  EXPECT_EQ(fake_cuda().of_functions[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES], 227 * 1024);
}

TEST_F(CudaRuntimeTest, AKernelOutlivesItsDevice) {
  std::shared_ptr<const gpu::Kernel> kernel = build(*open());
  EXPECT_EQ(fake_cuda().retained, 1);
  kernel.reset();
  EXPECT_EQ(fake_cuda().retained, 0);
  EXPECT_THAT(fake_cuda().alive, IsEmpty());
}

TEST_F(CudaRuntimeTest, ReportsWhatTheLoadedKernelNeeds) {
  fake_cuda().of_functions = {{CU_FUNC_ATTRIBUTE_NUM_REGS, 40},
                              {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 16},
                              {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 2048},
                              {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 512}};
  const auto device = open();
  const auto kernel = build(*device);
  EXPECT_EQ(kernel->resources().registers, 40);
  EXPECT_EQ(kernel->resources().local_bytes, 16);
  EXPECT_EQ(kernel->resources().static_shared_bytes, 2048);
  EXPECT_EQ(kernel->resources().max_threads, 512);
  EXPECT_EQ(fake_cuda().of_functions[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES], 225 * 1024);
}

TEST_F(CudaRuntimeTest, LoadErrorsNameTheKernelAndLeaveNothing) {
  const auto device = open();
  const struct {
    const char* call;
    CUresult result;
    ErrorCode code;
  } rows[] = {{"cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU, ErrorCode::unsupported},
              {"cuModuleGetFunction", CUDA_ERROR_NOT_FOUND, ErrorCode::internal},
              {"cuFuncGetAttribute", CUDA_ERROR_INVALID_VALUE, ErrorCode::internal},
              {"cuFuncSetAttribute", CUDA_ERROR_INVALID_VALUE, ErrorCode::internal}};
  for (const auto& row : rows) {
    fake_cuda().failures = {{row.call, row.result}};
    const auto kernels = device->build({&kKernel, 1});
    ASSERT_FALSE(kernels.ok());
    EXPECT_EQ(kernels.error().code, row.code);
    EXPECT_THAT(kernels.error().message,
                AllOf(StartsWith(row.call), HasSubstr(kKernel.expression)));
    EXPECT_THAT(fake_cuda().alive, IsEmpty()) << row.call;
  }
  fake_cuda().failures.clear();
  EXPECT_NE(build(*device), nullptr);
}

TEST_F(CudaRuntimeTest, WithoutACompilerItSaysSo) {
  cuda::Libraries libraries = fake_libraries();
  libraries.nvrtc = [] { return Result<Nvrtc>(Error{ErrorCode::not_found, "no libnvrtc"}); };
  const auto device = *cuda::open_cuda(libraries, {}, kTexts);
  const auto kernels = device->build({&kKernel, 1});
  ASSERT_FALSE(kernels.ok());
  EXPECT_EQ(kernels.error().code, ErrorCode::unsupported);
  EXPECT_EQ(kernels.error().message, "kernels: no libnvrtc");
}

TEST_F(CudaRuntimeTest, LaunchesWithOneStruct) {
  const auto device = open();
  const auto kernel = build(*device);
  const Stream stream = *device->create_stream();
  struct {
    int first = 42;
    float* pointer = nullptr;
  } arguments;
  ASSERT_TRUE(device
                  ->launch(*kernel, {.grid = {5, 6, 7}, .block = {8, 2, 1}, .shared_bytes = 99},
                           &arguments, sizeof arguments, stream)
                  .ok());
  ASSERT_TRUE(device
                  ->launch(*kernel,
                           {.grid = {4}, .block = {32}, .cluster = {2}, .cooperative = true},
                           &arguments, sizeof arguments, nullptr)
                  .ok());
  ASSERT_EQ(fake_cuda().launches.size(), 2u);
  const FakeLaunch& plain = fake_cuda().launches[0];
  EXPECT_THAT(plain.grid, ElementsAre(5, 6, 7));
  EXPECT_THAT(plain.block, ElementsAre(8, 2, 1));
  EXPECT_EQ(plain.shared_bytes, 99u);
  EXPECT_EQ(plain.stream, stream);
  EXPECT_EQ(plain.first_argument, 42);
  EXPECT_FALSE(plain.cooperative);
  const FakeLaunch& cooperative = fake_cuda().launches[1];
  EXPECT_TRUE(cooperative.cooperative);
  EXPECT_THAT(cooperative.cluster, ElementsAre(2, 1, 1));
  device->destroy_stream(stream);
}

TEST_F(CudaRuntimeTest, ALaunchErrorNamesTheLaunchAndIsNoLoss) {
  const auto device = open();
  const auto kernel = build(*device);
  fake_cuda().failures = {{"cuLaunchKernelEx", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES}};
  const int argument = 0;
  const gpu::LaunchShape shape{.grid = {3}, .block = {256}};
  const Status status = device->launch(*kernel, shape, &argument, sizeof argument, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message,
              AllOf(StartsWith("cuLaunchKernelEx: "), HasSubstr(kKernel.expression),
                    HasSubstr("grid 3 x 1 x 1, block 256 x 1 x 1")));
  fake_cuda().failures.clear();
  EXPECT_TRUE(device->launch(*kernel, shape, &argument, sizeof argument, nullptr).ok());
}

TEST_F(CudaRuntimeTest, RefusesImpossibleGeometryBeforeTheDriver) {
  fake_cuda().of_functions = {{CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1024},
                              {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 512}};
  const auto device = open();
  const auto kernel = build(*device);
  const struct {
    gpu::LaunchShape shape;
    std::size_t bytes;
    const char* message;
  } rows[] = {
      {{.grid = {0}, .block = {32}}, 4, "grid x: expected 1 to 2147483647, got 0"},
      {{.grid = {1, 65536}, .block = {32}}, 4, "grid y: expected 1 to 65535, got 65536"},
      {{.grid = {1}, .block = {1, 1, 65}}, 4, "block z: expected 1 to 64, got 65"},
      {{.grid = {1}, .block = {64, 32}}, 4, "threads of a block: expected 1 to 1024, got 2048"},
      {{.grid = {1}, .block = {513}}, 4, "by the kernel's registers: expected 1 to 512, got 513"},
      {{.grid = {1}, .block = {32}, .shared_bytes = 226 * 1024 + 1},
       4,
       "bytes: expected 0 to 231424, got 231425"},
      {{.grid = {1}, .block = {32}}, 4097, "bytes of arguments: expected 1 to 4096, got 4097"},
      {{.grid = {3}, .block = {32}, .cluster = {2}}, 4, "a multiple of the cluster's 2, got 3"},
      {{.grid = {17}, .block = {32}, .cluster = {17}}, 4, "cluster x: expected 1 to 16, got 17"},
      {{.grid = {265}, .block = {32}, .cooperative = true},
       4,
       "cooperative grid: expected at most 264 blocks (2 on each of 132 multiprocessors), got 265"},
  };
  std::vector<char> arguments(8192);
  for (const auto& row : rows) {
    const Status status = device->launch(*kernel, row.shape, arguments.data(), row.bytes, nullptr);
    ASSERT_FALSE(status.ok()) << row.message;
    EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(status.error().message,
                AllOf(HasSubstr(row.message), HasSubstr(kKernel.expression)));
  }
  EXPECT_EQ(fake_cuda().count("cuLaunchKernelEx"), 0);
  fake_cuda().major = 8;
  const auto older = open();
  const Status status = older->launch(*build(*older), {.grid = {2}, .block = {32}, .cluster = {2}},
                                      arguments.data(), 4, nullptr);
  EXPECT_THAT(status.error().message, HasSubstr("cluster x: expected 1 to 1, got 2"));
}

TEST_F(CudaRuntimeTest, ClustersOfMoreThanEightAreAskedFor) {
  const auto device = open();
  const auto kernel = build(*device);
  const int before = fake_cuda().count("cuFuncSetAttribute");
  const int argument = 1;
  for (const unsigned size : {8u, 16u}) {
    const gpu::LaunchShape shape{.grid = {16}, .block = {32}, .cluster = {size}};
    ASSERT_TRUE(device->launch(*kernel, shape, &argument, sizeof argument, nullptr).ok());
    EXPECT_EQ(fake_cuda().launches.back().cluster[0], size);
    EXPECT_EQ(fake_cuda().count("cuFuncSetAttribute"), before + int(size / 16));
  }
  fake_cuda().clusters = 5;
  EXPECT_EQ(*device->resident_clusters(*kernel, {.grid = {8}, .block = {32}, .cluster = {8}}), 5);
  fake_cuda().failures["cuFuncSetAttribute"] = CUDA_ERROR_NOT_SUPPORTED;
  const auto refused =
      device->resident_clusters(*kernel, {.grid = {16}, .block = {32}, .cluster = {16}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
}

TEST_F(CudaRuntimeTest, StreamsAndEvents) {
  const auto device = open();
  const Stream stream = *device->create_stream();
  const gpu::Event event = *device->create_event();
  EXPECT_TRUE(device->record(event, stream).ok());
  EXPECT_TRUE(device->wait(stream, event).ok());
  EXPECT_EQ(*device->elapsed_us(event, event), 1500.0);
  device->destroy_event(event);
  device->destroy_stream(stream);
  EXPECT_THAT(fake_cuda().alive, IsEmpty());
  fake_cuda().failures = {{"cuStreamCreate", CUDA_ERROR_OUT_OF_MEMORY}};
  EXPECT_EQ(device->create_stream().error().code, ErrorCode::out_of_memory);
}

TEST_F(CudaRuntimeTest, CapturesAGraph) {
  const auto device = open();
  const Stream stream = *device->create_stream();
  ASSERT_TRUE(device->begin_capture(stream).ok());
  const auto graph = device->end_capture(stream);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_TRUE(device->launch(*graph, stream).ok());
  device->destroy_graph(*graph);
  device->destroy_stream(stream);
  EXPECT_THAT(fake_cuda().alive, IsEmpty());
}

TEST_F(CudaRuntimeTest, AFailedCaptureLeavesTheStreamUsable) {
  const auto device = open();
  const Stream stream = *device->create_stream();
  for (const char* call : {"cuStreamEndCapture", "cuGraphInstantiateWithFlags"}) {
    ASSERT_TRUE(device->begin_capture(stream).ok()) << call;
    fake_cuda().failures = {{call, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED}};
    const auto graph = device->end_capture(stream);
    ASSERT_FALSE(graph.ok());
    EXPECT_THAT(graph.error().message, StartsWith(call));
    fake_cuda().failures.clear();
    EXPECT_THAT(fake_cuda().capturing, IsEmpty());
    EXPECT_EQ(fake_cuda().alive.size(), 1u) << "only the stream";
    EXPECT_TRUE(device->synchronize(stream).ok());
  }
  ASSERT_TRUE(device->begin_capture(stream).ok());
  const auto graph = device->end_capture(stream);
  ASSERT_TRUE(graph.ok());
  device->destroy_graph(*graph);
  device->destroy_stream(stream);
}

}  // namespace
}  // namespace rnntune
