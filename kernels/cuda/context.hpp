// SPDX-License-Identifier: Apache-2.0
// The primary context of a CUDA device, which the process shares with the CUDA runtime and with
// other libraries, and how calls into it fail.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "device/cuda_driver.hpp"
#include "device/gpu.hpp"

namespace rnntune::cuda {

struct Description {
  CUdevice device = 0;
  DeviceInfo info;
  gpu::Limits limits;
};

// Initialises the driver. The error says in one line why there is no device.
Result<int> count_devices(const CudaDriver& driver);
// Makes no context.
Result<Description> describe_device(const CudaDriver& driver, int ordinal);

class Context {
 public:
  // Initialises the driver. The error says in one line why there is no such device.
  static Result<std::shared_ptr<const Context>> open(const CudaDriver& driver, int ordinal);
  Context(const Context&) = delete;
  ~Context();

  const CudaDriver& driver() const { return driver_; }
  CUdevice device() const { return description_.device; }
  const DeviceInfo& info() const { return description_.info; }
  const gpu::Limits& limits() const { return description_.limits; }

  // An error after a fault of a kernel, since when every call fails.
  Status usable() const { return lost_ ? Status(lost_error()) : Status(); }

  // Runs `body` with the context current on this thread. A failure names the call and what
  // `argument` says of it.
  template <class Body, class Argument>
  Status run(const char* call, const Argument& argument, const Body& body) const {
    if (Status status = usable(); !status.ok()) return status;
    const Current current(*this);
    CUresult result = current.result;
    if (result == CUDA_SUCCESS) result = body();
    return result == CUDA_SUCCESS ? Status{} : failure(result, call, argument());
  }
  template <class Body>
  Status run(const char* call, const Body& body) const {
    return run(
        call, [] { return std::string(); }, body);
  }
  // For what has no caller to tell: errors are dropped, and a lost context is left alone.
  template <class Body>
  void release(const Body& body) const {
    if (lost_) return;
    const Current current(*this);
    if (current.result == CUDA_SUCCESS) body();
  }

 private:
  // Leaves the thread's own context as it was.
  struct Current {
    explicit Current(const Context& context);
    Current(const Current&) = delete;
    ~Current();
    const Context& context;
    CUresult result;
    bool pushed = false;
  };

  Context(const CudaDriver& driver, Description description)
      : driver_(driver), description_(std::move(description)) {}
  Error failure(CUresult result, const char* call, const std::string& argument) const;
  Error lost_error() const;

  const CudaDriver driver_;
  const Description description_;
  CUcontext context_ = nullptr;
  // Until the process ends.
  mutable std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  mutable std::string lost_reason_;  // guarded by mutex_
};

}  // namespace rnntune::cuda
