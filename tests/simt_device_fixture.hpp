// SPDX-License-Identifier: Apache-2.0
// The emulated device with the kernels of simt_kernels.cuh, for its tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "simt/device.hpp"
#include "tests/simt_device_kernels.hpp"
#include "tests/simt_kernels.cuh"

namespace rnntune::simt {

inline std::string message(const Status& status) {
  return status.ok() ? "ok" : status.error().message;
}
template <class T>
std::string message(const Result<T>& result) {
  return result.ok() ? "ok" : result.error().message;
}

#define EXPECT_OK(call) EXPECT_EQ(message(call), "ok")
#define ASSERT_OK(call) ASSERT_EQ(message(call), "ok")

inline std::shared_ptr<gpu::GpuDevice> open(const OpenOptions& options = {}) {
#if defined(RNNTUNE_SIMT_RACE_CHECKER)
  const auto kernels = options.checked ? checked_test_kernels() : plain_test_kernels();
#else
  const auto kernels = plain_test_kernels();
#endif
  return open_simt(options, {kernels.begin(), kernels.end()});
}

inline std::shared_ptr<const gpu::Kernel> kernel(gpu::GpuDevice& device, const char* expression) {
  const gpu::KernelId id{"simt_kernels.cuh", expression};
  auto built = device.build({&id, 1});
  EXPECT_OK(built);
  return built.ok() ? built->front() : nullptr;
}

// Floats of a device.
struct Floats {
  Floats(gpu::GpuDevice& device, std::size_t count)
      : device(device),
        count(count),
        data(static_cast<float*>(*device.allocate(count * sizeof(float)))) {}
  Floats(gpu::GpuDevice& device, const std::vector<float>& values) : Floats(device, values.size()) {
    EXPECT_OK(device.to_device(data, values.data(), count * sizeof(float)));
    EXPECT_OK(device.synchronize());
  }
  Floats(const Floats&) = delete;
  ~Floats() { device.release(data); }

  std::vector<float> read(Stream stream = nullptr) const {
    std::vector<float> values(count);
    EXPECT_OK(device.to_host(values.data(), data, count * sizeof(float), stream));
    return values;
  }

  gpu::GpuDevice& device;
  const std::size_t count;
  float* const data;
};

// y += factor x, on a stream.
inline Status add(gpu::GpuDevice& device, const Floats& x, const Floats& y, float factor,
                  Stream stream) {
  const cuda::ScaleArguments arguments{x.data, y.data, factor, static_cast<int>(x.count)};
  const auto scale = kernel(device, "rnntune::cuda::scale_add");
  return device.launch(*scale, {.grid = {4}, .block = {32}}, &arguments, sizeof arguments, stream);
}

}  // namespace rnntune::simt
