// SPDX-License-Identifier: Apache-2.0
#include "simt/device.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "device/blas.hpp"
#include "device/geometry.hpp"
#include "simt/gemm.hpp"
#include "simt/launch.hpp"
#include "simt/limits.hpp"
#include "simt/memory.hpp"
#include "simt/profile.hpp"
#include "simt/streams.hpp"

namespace rnntune::simt {
namespace {

class SimtDevice;

class SimtKernel final : public gpu::Kernel {
 public:
  SimtKernel(std::shared_ptr<const SimtDevice> device, const KernelEntry& entry)
      : entry(entry), device_(std::move(device)), id_{entry.file, entry.expression} {}
  const gpu::KernelId& id() const override { return id_; }
  const gpu::KernelResources& resources() const override { return resources_; }

  const KernelEntry entry;

 private:
  const std::shared_ptr<const SimtDevice> device_;
  const gpu::KernelId id_;
  const gpu::KernelResources resources_;
};

class SimtDevice final : public gpu::GpuDevice, public std::enable_shared_from_this<SimtDevice> {
 public:
  SimtDevice(const OpenOptions& options, std::vector<KernelEntry> kernels)
      : info_(describe(options)),
        kernels_(std::move(kernels)),
        profile_(options.profile),
        memory_(options.memory_bytes),
        streams_(options.seed) {}

  const DeviceInfo& info() const override { return info_; }
  const gpu::Limits& limits() const override { return kLimits; }

  Result<void*> allocate(std::size_t bytes) override;
  void release(void* memory) override;
  Status to_device(void* device, const void* host, std::size_t bytes, Stream stream) override;
  Status to_host(void* host, const void* device, std::size_t bytes, Stream stream) override;
  Status fill(void* device, unsigned char value, std::size_t bytes, Stream stream) override;
  Status copy(void* to, const void* from, std::size_t bytes, Stream stream) override;
  Status synchronize(Stream stream) override {
    return call([&] { return streams_.synchronize(stream); });
  }

  Result<std::vector<std::shared_ptr<const gpu::Kernel>>> build(
      std::span<const gpu::KernelId> kernels) override;
  Status launch(const gpu::Kernel& kernel, const gpu::LaunchShape& shape, const void* arguments,
                std::size_t bytes, Stream stream) override;

  Status gemm(const Gemm& gemm, Stream stream) override;
  int gemm_choices() const override { return kGemmChoices; }
  Result<std::shared_ptr<const gpu::PreparedGemm>> prepare(const Gemm& shape, int choice) override;
  Status run(const gpu::PreparedGemm& prepared, const Gemm& gemm, void* workspace,
             Stream stream) override;

  Result<Stream> create_stream() override {
    const std::lock_guard lock(mutex_);
    return streams_.create_stream();
  }
  void destroy_stream(Stream stream) override {
    const std::lock_guard lock(mutex_);
    streams_.destroy_stream(stream);
  }
  Result<gpu::Event> create_event() override {
    const std::lock_guard lock(mutex_);
    return streams_.create_event();
  }
  void destroy_event(gpu::Event event) override {
    const std::lock_guard lock(mutex_);
    streams_.destroy_event(event);
  }
  Status record(gpu::Event event, Stream stream) override {
    return call([&] { return streams_.record(event, stream); });
  }
  Status wait(Stream stream, gpu::Event event) override {
    return call([&] { return streams_.wait(stream, event); });
  }
  Result<double> elapsed_us(gpu::Event from, gpu::Event to) override {
    return call([&] { return streams_.elapsed_us(from, to); });
  }

  Status begin_capture(Stream stream) override {
    return call([&] { return streams_.begin_capture(stream); });
  }
  // Ends the capture whatever else there is to tell.
  Result<gpu::Graph> end_capture(Stream stream) override {
    const std::lock_guard lock(mutex_);
    return streams_.end_capture(stream);
  }
  Status launch(gpu::Graph graph, Stream stream) override {
    return call([&] { return streams_.launch(graph, stream); });
  }
  void destroy_graph(gpu::Graph graph) override {
    const std::lock_guard lock(mutex_);
    streams_.destroy_graph(graph);
  }

  std::string why_not_memory(const void* memory, std::size_t bytes) const override {
    const std::lock_guard lock(mutex_);
    return memory_.why_not(memory, bytes);
  }

 private:
  // A range that queued work touches: looked at when it is queued, and again when it runs, since a
  // graph may outlive the memory.
  struct Range {
    const char* name;
    const void* memory;
    std::size_t bytes;
  };

  template <class Body>
  auto call(const Body& body) -> decltype(body()) {
    const std::lock_guard lock(mutex_);
    if (Status fault = streams_.queue().take_fault(); !fault.ok()) return fault.error();
    return body();
  }
  Status check(const std::vector<Range>& ranges) const;
  Status check_product(const Gemm& gemm) const;
  // Queues what has been checked: `status` is how that went.
  Status submit(Stream stream, const std::string& what, Status status, std::function<Status()> run);
  Status submit_access(Stream stream, const std::string& what, std::vector<Range> ranges,
                       std::function<void()> run);
  Status run_kernel(const KernelEntry& entry, const gpu::LaunchShape& shape, const void* arguments);

  const DeviceInfo info_;
  const std::vector<KernelEntry> kernels_;
  const std::shared_ptr<Profile> profile_;
  mutable std::mutex mutex_;
  Memory memory_;
  Streams streams_;
};

std::string bytes_text(const char* what, std::size_t bytes) {
  return std::string(what) + " of " + std::to_string(bytes) + " bytes";
}

// ---- memory

Status SimtDevice::check(const std::vector<Range>& ranges) const {
  for (const Range& range : ranges) {
    const std::string why = memory_.why_not(range.memory, range.bytes);
    if (!why.empty()) return invalid_argument(std::string(range.name) + ": " + why);
  }
  return {};
}

Status SimtDevice::submit(Stream stream, const std::string& what, Status status,
                          std::function<Status()> run) {
  if (status.ok()) return streams_.add(stream, {what, std::move(run)});
  const Error error{status.error().code, what + ": " + status.error().message};
  streams_.spoil(stream, error.message);
  return error;
}

Status SimtDevice::submit_access(Stream stream, const std::string& what, std::vector<Range> ranges,
                                 std::function<void()> run) {
  Status status = check(ranges);
  return submit(stream, what, std::move(status), [this, ranges = std::move(ranges), run] {
    Status now = check(ranges);
    if (now.ok()) run();
    return now;
  });
}

Result<void*> SimtDevice::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (Status status = streams_.not_in_capture("allocate"); !status.ok()) return status.error();
  return memory_.allocate(bytes);
}

// Waits for all that is queued, as cuMemFree does.
void SimtDevice::release(void* memory) {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  streams_.queue().run_down_to(0);
  if (!memory_.release(memory)) {
    streams_.queue().set_fault(invalid_argument("release: is no allocation of the device"));
  }
}

// What the host memory holds now, as the driver does with memory that is not pinned.
Status SimtDevice::to_device(void* device, const void* host, std::size_t bytes, Stream stream) {
  if (bytes == 0) return {};
  return call([&]() -> Status {
    const std::string what = bytes_text("copy to the device", bytes);
    if (Status status = streams_.not_captured(stream, what); !status.ok()) return status;
    const auto* const begin = static_cast<const std::byte*>(host);
    const std::vector<Range> ranges{{"device", device, bytes}};
    if (Status status = check(ranges); !status.ok()) return submit(stream, what, status, nullptr);
    return submit_access(stream, what, ranges,
                         [device, staged = std::vector<std::byte>(begin, begin + bytes)] {
                           std::memcpy(device, staged.data(), staged.size());
                         });
  });
}

// Waits, as the driver does with host memory that is not pinned.
Status SimtDevice::to_host(void* host, const void* device, std::size_t bytes, Stream stream) {
  if (bytes == 0) return {};
  return call([&]() -> Status {
    const std::string what = bytes_text("copy to the host", bytes);
    if (Status status = streams_.not_captured(stream, what); !status.ok()) return status;
    Status status = submit_access(stream, what, {{"device", device, bytes}},
                                  [=] { std::memcpy(host, device, bytes); });
    return status.ok() ? streams_.synchronize(stream) : status;
  });
}

Status SimtDevice::fill(void* device, unsigned char value, std::size_t bytes, Stream stream) {
  if (bytes == 0) return {};
  return call([&] {
    return submit_access(stream, bytes_text("fill", bytes), {{"device", device, bytes}},
                         [=] { std::memset(device, value, bytes); });
  });
}

Status SimtDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  if (bytes == 0) return {};
  return call([&] {
    return submit_access(stream, bytes_text("copy", bytes),
                         {{"to", to, bytes}, {"from", from, bytes}},
                         [=] { std::memmove(to, from, bytes); });
  });
}

// ---- kernels

Result<std::vector<std::shared_ptr<const gpu::Kernel>>> SimtDevice::build(
    std::span<const gpu::KernelId> kernels) {
  std::vector<std::shared_ptr<const gpu::Kernel>> built;
  for (const gpu::KernelId& id : kernels) {
    const Result<const KernelEntry*> found = find_kernel(kernels_, id);
    if (!found.ok()) return found.error();
    built.push_back(std::make_shared<SimtKernel>(shared_from_this(), **found));
  }
  return built;
}

Status SimtDevice::launch(const gpu::Kernel& kernel, const gpu::LaunchShape& shape,
                          const void* arguments, std::size_t bytes, Stream stream) {
  const KernelEntry& entry = static_cast<const SimtKernel&>(kernel).entry;
  const std::string what = "launch of " + kernel.id().expression;
  Status status = gpu::check_geometry(shape, kLimits, kernel);
  if (status.ok() && shape.cooperative) {
    status = gpu::check_resident(shape, kLimits, kernel, resident_blocks(shape));
  }
  if (status.ok()) status = check_geometry(shape);
  if (status.ok() && bytes != entry.argument_bytes) {
    status =
        invalid_argument(what + ": arguments: expected " + std::to_string(entry.argument_bytes) +
                         " bytes, got " + std::to_string(bytes));
  }
  return call([&] {
    if (!status.ok()) {
      streams_.spoil(stream, status.error().message);
      return status;
    }
    std::vector<std::max_align_t> copy((bytes + sizeof(std::max_align_t) - 1) /
                                       sizeof(std::max_align_t));
    std::memcpy(copy.data(), arguments, bytes);
    return streams_.add(stream, {what, [this, entry, shape, copy = std::move(copy)] {
                                   return run_kernel(entry, shape, copy.data());
                                 }});
  });
}

Status SimtDevice::run_kernel(const KernelEntry& entry, const gpu::LaunchShape& shape,
                              const void* arguments) {
  if (profile_) profile_->begin_launch(entry.expression);
  const LaunchOptions options{
      .seed = streams_.queue().next_seed(),
      .why_not_memory = [this](const void* at, std::size_t n) { return memory_.why_not(at, n); },
      .profile = profile_.get()};
  Status status = simt::launch(
      shape, [&] { entry.call(entry.kernel, arguments); }, options);
  if (profile_) profile_->end_launch();
  const std::string overrun = memory_.overrun();
  if (!status.ok() || overrun.empty()) return status;
  return Error{ErrorCode::internal, overrun};
}

// ---- products

Status SimtDevice::check_product(const Gemm& gemm) const {
  if (Status status = check_gemm(gemm); !status.ok()) return status;
  const std::string why =
      each_operand(gemm, [&](const char* name, const float* memory, std::size_t bytes) {
        const bool element = reinterpret_cast<std::uintptr_t>(memory) % sizeof(float) == 0;
        const std::string reason =
            element ? memory_.why_not(memory, bytes) : "is not aligned to 4 bytes";
        return reason.empty() ? reason : std::string(name) + ": " + reason;
      });
  if (why.empty()) return {};
  return invalid_argument(why);
}

Status SimtDevice::gemm(const Gemm& gemm, Stream stream) {
  return run(PreparedProduct(gemm, 0), gemm, nullptr, stream);
}

Result<std::shared_ptr<const gpu::PreparedGemm>> SimtDevice::prepare(const Gemm& shape,
                                                                     int choice) {
  if (Status status = check_gemm(shape); !status.ok()) return status.error();
  if (choice < 0 || choice > kGemmChoices) {
    return invalid_argument("choice: expected 0 to " + std::to_string(kGemmChoices) + ", got " +
                            std::to_string(choice));
  }
  return std::shared_ptr<const gpu::PreparedGemm>(std::make_shared<PreparedProduct>(shape, choice));
}

Status SimtDevice::run(const gpu::PreparedGemm& prepared, const Gemm& g, void* workspace,
                       Stream stream) {
  const auto& product = static_cast<const PreparedProduct&>(prepared);
  const int parts = product.parts();
  const std::size_t bytes = product.workspace_bytes();
  const auto check_all = [this, g, workspace, bytes] {
    Status status = check_product(g);
    return status.ok() ? check({{"workspace", workspace, bytes}}) : status;
  };
  const std::string sizes =
      " " + std::to_string(g.m) + " x " + std::to_string(g.n) + " x " + std::to_string(g.k);
  return call([&] {
    Status status = check_all();
    const std::string why = product.why_not(g);
    if (status.ok() && !why.empty()) status = invalid_argument(why);
    if (parts == 1) {
      return submit(stream, "gemm" + sizes, status, [check_all, g] {
        Status now = check_all();
        if (now.ok()) multiply(g);
        return now;
      });
    }
    float* const partial = static_cast<float*>(workspace);
    status = submit(stream, "gemm" + sizes, status, [=] {
      Status now = check_all();
      if (now.ok()) multiply_parts(g, parts, partial);
      return now;
    });
    if (!status.ok()) return status;
    return submit(stream, "sum of gemm" + sizes, {}, [=] {
      Status now = check_all();
      if (now.ok()) add_parts(g, parts, partial);
      return now;
    });
  });
}

}  // namespace

std::shared_ptr<gpu::GpuDevice> open_simt(const OpenOptions& options,
                                          std::vector<KernelEntry> kernels) {
  return std::make_shared<SimtDevice>(options, std::move(kernels));
}

}  // namespace rnntune::simt
