// SPDX-License-Identifier: Apache-2.0
// Not verified on a GPU: how much recording slows launches, and that both sources agree.
#include "tuner/gpu/gpu_clock.hpp"

#include <utility>

#include "device/shared_library.hpp"
#include "paths.hpp"

namespace rnntune::tuner {

Result<std::unique_ptr<GpuClock>> GpuClock::open(std::shared_ptr<Device> device,
                                                 OpenTrace open_trace) {
  std::unique_ptr<GpuClock> clock(new GpuClock(std::move(device), std::move(open_trace)));
  for (gpu::Event* const event : {&clock->from_, &clock->to_}) {
    const Result<gpu::Event> created = clock->gpu().create_event();
    if (!created.ok()) return created.error();
    *event = *created;
  }
  Result<std::unique_ptr<ActivityTrace>> trace = clock->open_trace_();
  if (trace.ok()) {
    clock->trace_ = std::move(trace.value());
    clock->source_ = "CUPTI activity records";
  } else {
    clock->use_events(trace.error().message);
  }
  return clock;
}

GpuClock::~GpuClock() {
  for (const gpu::Event event : {from_, to_}) {
    if (event != nullptr) gpu().destroy_event(event);
  }
}

void GpuClock::use_events(const std::string& why) {
  trace_.reset();
  source_ = "CUDA events (" + why + ")";
}

Status GpuClock::begin_sample() {
  // What was queued before must not lie in the sample.
  if (Status status = device_->synchronize(); !status.ok()) return status;
  if (trace_) {
    if (Status status = trace_->begin(); !status.ok()) {
      use_events(status.error().message);
      ++changes_;
    }
  }
  return gpu().record(from_, nullptr);
}

Result<double> GpuClock::end_sample() {
  Status queued = gpu().record(to_, nullptr);
  const Status complete = device_->synchronize();
  if (queued.ok()) queued = complete;
  if (trace_) {
    const Result<Activities> activities = trace_->end();  // also after a failure, to end the sample
    if (!queued.ok()) return queued.error();
    if (activities.ok()) return span_us(*activities);
    use_events(activities.error().message);
    ++changes_;
  }
  if (!queued.ok()) return queued.error();
  return gpu().elapsed_us(from_, to_);
}

void GpuClock::set_aside(const std::function<void()>& body) {
  const bool traced = trace_ != nullptr;
  trace_.reset();
  body();
  if (!traced) return;
  Result<std::unique_ptr<ActivityTrace>> trace = open_trace_();
  if (trace.ok()) {
    trace_ = std::move(trace.value());
  } else {
    use_events(trace.error().message);
    ++changes_;
  }
}

std::string SourceNews::read(const Clock& clock) {
  if (clock.source() == told_) return {};
  told_ = clock.source();
  return "timed by " + told_;
}

Probe probe_of(std::shared_ptr<Device> device) {
  return [device = std::move(device)]() -> Status {
    constexpr std::size_t kBytes = 4096;
    const Result<void*> memory = device->allocate(kBytes);
    if (!memory.ok()) return memory.error();
    Status status = device->fill(*memory, 1, kBytes);
    const Status complete = device->synchronize();
    device->release(*memory);
    return status.ok() ? complete : status;
  };
}

Result<std::shared_ptr<Clock>> open_clock(std::shared_ptr<Device> device) {
  if (device->info().backend != "cuda") {
    return std::shared_ptr<Clock>(std::shared_ptr<Clock>(), &steady_clock());
  }
  Result<std::unique_ptr<GpuClock>> clock = GpuClock::open(device, [device] {
    return open_activity_trace(cuda_library_folders(data_folder()), GraphDetail::whole,
                               probe_of(device));
  });
  if (!clock.ok()) return clock.error();
  return std::shared_ptr<Clock>(std::move(clock.value()));
}

}  // namespace rnntune::tuner
