// SPDX-License-Identifier: Apache-2.0
// The clock of a GPU: samples are timed on the device, by CUPTI's activity records or, where those
// are not to be had, by events of the stream that steps are queued on.
#pragma once

#include <functional>
#include <memory>

#include "device/gpu.hpp"
#include "tuner/gpu/activity.hpp"
#include "tuner/measure/measure.hpp"

namespace rnntune::tuner {

// A sample by records is the time from the first start to the last end, so the launch of the first
// kernel is not in it; by events it is. Both leave out what the host does after the last launch.
// Samples must be of the thread that opened the clock.
class GpuClock : public Clock {
 public:
  // A trace, or the reason why there is none.
  using OpenTrace = std::function<Result<std::unique_ptr<ActivityTrace>>()>;
  static Result<std::unique_ptr<GpuClock>> open(std::shared_ptr<Device> device,
                                                OpenTrace open_trace);
  ~GpuClock() override;
  GpuClock(const GpuClock&) = delete;

  double now_us() override { return steady_clock().now_us(); }
  double cpu_us() override { return steady_clock().cpu_us(); }
  Status begin_sample() override;
  // Records that cannot be trusted end their use: this sample and all later ones are by events.
  Result<double> end_sample() override;
  bool completes_steps() const override { return true; }

  // "CUPTI activity records", or "CUDA events (why not by records)".
  std::string source() const override { return source_; }
  int source_changes() const override { return changes_; }
  // Closes the trace meanwhile. Where it does not open again, later samples are by events.
  void set_aside(const std::function<void()>& body) override;

 private:
  GpuClock(std::shared_ptr<Device> device, OpenTrace open_trace)
      : device_(std::move(device)), open_trace_(std::move(open_trace)) {}
  gpu::GpuDevice& gpu() const { return gpu::gpu(*device_); }
  void use_events(const std::string& why);

  std::shared_ptr<Device> device_;
  OpenTrace open_trace_;
  std::unique_ptr<ActivityTrace> trace_;  // null: by events
  gpu::Event from_ = nullptr, to_ = nullptr;
  std::string source_;
  int changes_ = 0;
};

// What to tell of a clock: "timed by ..." when first asked and after each change; empty: nothing.
class SourceNews {
 public:
  std::string read(const Clock& clock);

 private:
  std::string told_;
};

// A fill of a little memory of `device`, complete on return: a record to look for.
Probe probe_of(std::shared_ptr<Device> device);

// The clock to time steps on this device with, chosen once: on a CUDA device a GpuClock, else the
// machine's own.
Result<std::shared_ptr<Clock>> open_clock(std::shared_ptr<Device> device);

}  // namespace rnntune::tuner
