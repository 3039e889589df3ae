// SPDX-License-Identifier: Apache-2.0
// What a plan queues on a device: kernels, products, copies, and what waits for what. The first
// failure of a call ends it: what comes after is not queued.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "device/gpu.hpp"

namespace rnntune::cuda {

// Two kinds of products differ in what is good for them: those of one time step, which the next one
// waits for, and those over many.
enum class Role { step, sequence };

// The products of a plan, prepared for every shape of a call at the problem's capacity; others are
// left to the library's own choice. Where the library has no such choice for a shape, it is its
// own.
class Products {
 public:
  // Choices as GpuDevice::prepare counts them, at most the device's.
  Products(std::shared_ptr<gpu::GpuDevice> device, int step_choice, int sequence_choice);

  Status prepare(Role role, const Gemm& shape);
  std::size_t workspace_bytes() const { return workspace_bytes_; }  // of any one product
  Status run(Role role, const Gemm& gemm, void* workspace, Stream stream) const;

 private:
  struct Prepared {
    Role role;
    Gemm shape;
    // For operands that begin on 16 bytes, and for others.
    std::shared_ptr<const gpu::PreparedGemm> aligned, any;
  };

  const Prepared* find(Role role, const Gemm& gemm) const;
  Result<std::shared_ptr<const gpu::PreparedGemm>> prepare(int choice, const Gemm& shape);

  const std::shared_ptr<gpu::GpuDevice> device_;
  const int choices_[2];
  std::vector<Prepared> prepared_;
  std::size_t workspace_bytes_ = 0;
};

// Alignment that a product asks of its workspace, and what a place aligned to 64 bytes lacks of it.
inline constexpr std::size_t kGemmWorkspaceAlignment = 256, kGemmWorkspaceSlack = 192;

class Queue {
 public:
  // Queues on a stream; the products work in `workspace`.
  Queue(gpu::GpuDevice& device, const Products& products, Stream stream, float* workspace,
        Status& status);
  // Queues nothing, and prepares the products instead.
  Queue(gpu::GpuDevice& device, Products& rehearsed, Status& status);

  bool rehearses() const { return rehearsed_ != nullptr; }

  // The arguments are the kernel's struct.
  template <class Arguments>
  void launch(const gpu::Kernel& kernel, const gpu::LaunchShape& shape,
              const Arguments& arguments) {
    call([&] { return device_.launch(kernel, shape, &arguments, sizeof arguments, stream_); });
  }
  void multiply(Role role, const Gemm& gemm);
  void copy(float* to, const float* from, std::int64_t count);
  void zero(float* to, std::int64_t count);
  void record(gpu::Event event) {
    call([&] { return device_.record(event, stream_); });
  }
  void wait(gpu::Event event) {
    call([&] { return device_.wait(stream_, event); });
  }

 private:
  template <class Body>
  void call(const Body& body) {
    if (status_.ok() && !rehearses()) status_ = body();
  }

  gpu::GpuDevice& device_;
  const Products& products_;
  Products* const rehearsed_;
  const Stream stream_;
  void* const workspace_;
  Status& status_;
};

// Streams and events that live with a plan.
class Handles {
 public:
  explicit Handles(std::shared_ptr<gpu::GpuDevice> device) : device_(std::move(device)) {}
  Handles(const Handles&) = delete;
  ~Handles();

  Status create(std::size_t streams, std::size_t events);
  Stream stream(std::size_t i) const { return streams_[i]; }
  gpu::Event event(std::size_t i) const { return events_[i]; }

 private:
  const std::shared_ptr<gpu::GpuDevice> device_;
  std::vector<Stream> streams_;
  std::vector<gpu::Event> events_;
};

}  // namespace rnntune::cuda
