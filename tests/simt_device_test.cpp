// SPDX-License-Identifier: Apache-2.0
// The emulated device does what its interface says, and to wrong plans what they deserve.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "simt/device.hpp"
#include "tests/simt_device_kernels.hpp"
#include "tests/simt_kernels.cuh"

namespace rnntune::simt {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

std::string message(const Status& status) { return status.ok() ? "ok" : status.error().message; }
template <class T>
std::string message(const Result<T>& result) {
  return result.ok() ? "ok" : result.error().message;
}

std::shared_ptr<gpu::GpuDevice> open(const OpenOptions& options = {}) {
  const std::span<const KernelEntry> kernels = plain_test_kernels();
  return open_simt(options, {kernels.begin(), kernels.end()});
}

std::shared_ptr<const gpu::Kernel> kernel(gpu::GpuDevice& device, const char* expression) {
  const gpu::KernelId id{"simt_kernels.cuh", expression};
  auto built = device.build({&id, 1});
  EXPECT_TRUE(built.ok()) << message(built);
  return built.ok() ? built->front() : nullptr;
}

// Floats of a device.
struct Floats {
  Floats(gpu::GpuDevice& device, std::size_t count)
      : device(device),
        count(count),
        data(static_cast<float*>(*device.allocate(count * sizeof(float)))) {}
  Floats(gpu::GpuDevice& device, const std::vector<float>& values) : Floats(device, values.size()) {
    Status status = device.to_device(data, values.data(), count * sizeof(float));
    if (status.ok()) status = device.synchronize();
    EXPECT_TRUE(status.ok()) << message(status);
  }
  Floats(const Floats&) = delete;
  ~Floats() { device.release(data); }

  std::vector<float> read() const {
    std::vector<float> values(count);
    Status status = device.to_host(values.data(), data, count * sizeof(float));
    if (status.ok()) status = device.synchronize();
    EXPECT_TRUE(status.ok()) << message(status);
    return values;
  }

  gpu::GpuDevice& device;
  const std::size_t count;
  float* const data;
};

// y += factor x, on a stream.
Status add(gpu::GpuDevice& device, const Floats& x, const Floats& y, float factor, Stream stream) {
  const cuda::ScaleArguments arguments{x.data, y.data, factor, static_cast<int>(x.count)};
  const auto scale = kernel(device, "rnntune::cuda::scale_add");
  return device.launch(*scale, {.grid = {4}, .block = {32}}, &arguments, sizeof arguments, stream);
}

TEST(SimtDeviceTest, LaunchesAKernel) {
  const auto device = open();
  const Floats x(*device, std::vector<float>(100, 2.0f)), y(*device, std::vector<float>(100, 1.0f));
  const Status status = add(*device, x, y, 3.0f, nullptr);
  ASSERT_TRUE(status.ok()) << message(status);
  EXPECT_THAT(y.read(), Each(7.0f));
}

}  // namespace
}  // namespace rnntune::simt
