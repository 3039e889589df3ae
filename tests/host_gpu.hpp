// SPDX-License-Identifier: Apache-2.0
// A "cuda" device whose memory is the host's: for libraries that are themselves fakes. It launches
// nothing.
#pragma once

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "device/gpu.hpp"

namespace rnntune::fakes {

class HostGpu final : public gpu::GpuDevice {
 public:
  HostGpu() { info_.backend = "cuda"; }
  ~HostGpu() override {
    for (const auto& [memory, bytes] : allocations) std::free(memory);
  }

  // What a test looks at, and what it breaks.
  std::map<void*, std::size_t> allocations;
  int streams = 0, events = 0;
  int contexts = 0;           // entered and not left
  mutable int questions = 0;  // about memory
  std::size_t memory_bytes = std::size_t(-1);
  std::string broken;  // the call that fails: "to_device"

  const DeviceInfo& info() const override { return info_; }
  const gpu::Limits& limits() const override { return limits_; }

  Result<void*> allocate(std::size_t bytes) override {
    if (bytes > memory_bytes) {
      return Error{ErrorCode::out_of_memory, "no memory for " + std::to_string(bytes) + " bytes"};
    }
    void* memory = std::malloc(bytes);
    allocations[memory] = bytes;
    return memory;
  }
  void release(void* memory) override {
    allocations.erase(memory);
    std::free(memory);
  }
  Status to_device(void* device, const void* host, std::size_t bytes, Stream) override {
    return move("to_device", device, host, bytes);
  }
  Status to_host(void* host, const void* device, std::size_t bytes, Stream) override {
    return move("to_host", host, device, bytes);
  }
  Status copy(void* to, const void* from, std::size_t bytes, Stream) override {
    return move("copy", to, from, bytes);
  }
  Status fill(void* device, unsigned char value, std::size_t bytes, Stream) override {
    if (bytes > 0) std::memset(device, value, bytes);
    return done("fill");
  }
  Status synchronize(Stream) override { return done("synchronize"); }
  Status gemm(const Gemm&, Stream) override { return none(); }

  Result<std::vector<std::shared_ptr<const gpu::Kernel>>> build(
      std::span<const gpu::KernelId>) override {
    return none();
  }
  Status launch(const gpu::Kernel&, const gpu::LaunchShape&, const void*, std::size_t,
                Stream) override {
    return none();
  }
  int gemm_choices() const override { return 0; }
  Result<std::shared_ptr<const gpu::PreparedGemm>> prepare(const Gemm&, int) override {
    return none();
  }
  Status run(const gpu::PreparedGemm&, const Gemm&, void*, Stream) override { return none(); }

  Result<Stream> create_stream() override {
    if (Status status = done("create_stream"); !status.ok()) return status.error();
    ++streams;
    return Stream{this};
  }
  void destroy_stream(Stream) override { --streams; }
  Result<gpu::Event> create_event() override {
    if (Status status = done("create_event"); !status.ok()) return status.error();
    ++events;
    return gpu::Event{new Clock::time_point};
  }
  void destroy_event(gpu::Event event) override {
    --events;
    delete static_cast<Clock::time_point*>(event);
  }
  Status record(gpu::Event event, Stream) override {
    *static_cast<Clock::time_point*>(event) = Clock::now();
    return done("record");
  }
  Status wait(Stream, gpu::Event) override { return {}; }
  Result<double> elapsed_us(gpu::Event from, gpu::Event to) override {
    const auto time = [](gpu::Event event) { return *static_cast<Clock::time_point*>(event); };
    return std::chrono::duration<double, std::micro>(time(to) - time(from)).count();
  }

  Status begin_capture(Stream) override { return none(); }
  Result<gpu::Graph> end_capture(Stream) override { return none(); }
  Status launch(gpu::Graph, Stream) override { return none(); }
  void destroy_graph(gpu::Graph) override {}
  Status with_context(const std::function<void()>& body) override {
    if (Status status = done("with_context"); !status.ok()) return status;
    ++contexts;
    body();
    --contexts;
    return {};
  }
  std::string why_not_memory(const void* memory, std::size_t bytes) const override {
    ++questions;
    const auto at = allocations.find(const_cast<void*>(memory));
    return at != allocations.end() && at->second >= bytes ? "" : "is not memory of the device";
  }

 private:
  using Clock = std::chrono::steady_clock;
  static Error none() { return unsupported("a device for libraries alone"); }
  Status done(const char* call) const {
    if (broken != call) return {};
    return Error{ErrorCode::internal, std::string(call) + ": broken"};
  }
  Status move(const char* call, void* to, const void* from, std::size_t bytes) const {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return done(call);
  }

  DeviceInfo info_;
  gpu::Limits limits_;
};

}  // namespace rnntune::fakes
