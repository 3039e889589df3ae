// SPDX-License-Identifier: Apache-2.0
// The clock of a GPU, on a device that queues nothing and a CUPTI that is fake: what times a
// sample, and that a source that fails hands over to the other one with a reason.
#include "tuner/gpu/gpu_clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "tests/fake_cupti.hpp"
#include "tuner/gpu/cupti_trace.hpp"
#include "tuner/measure/environment.hpp"

namespace rnntune::tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Error absent() { return unsupported("not in this test"); }

// A GPU with a clock of its own. Work is told to the fake CUPTI, and events note the time.
class FakeGpu : public gpu::GpuDevice {
 public:
  FakeGpu() { info_.backend = "cuda"; }
  ~FakeGpu() override { EXPECT_EQ(events, 0); }

  double now_us = 1000;
  int events = 0;
  std::vector<std::string> calls;
  Status synchronized;  // the answer of every synchronize

  const DeviceInfo& info() const override { return info_; }
  const gpu::Limits& limits() const override { return limits_; }
  Result<void*> allocate(std::size_t bytes) override { return std::malloc(bytes); }
  void release(void* memory) override { std::free(memory); }
  Status fill(void*, unsigned char, std::size_t, Stream) override {
    if (FakeCupti::now != nullptr) FakeCupti::now->fill(std::uint64_t(now_us * 1e3), ends(1));
    now_us += 1;
    return {};
  }
  Status synchronize(Stream) override {
    calls.push_back("synchronize");
    return synchronized;
  }
  Result<gpu::Event> create_event() override { return gpu::Event(&times_[events++]); }
  void destroy_event(gpu::Event) override { --events; }
  Status record(gpu::Event event, Stream) override {
    *static_cast<double*>(event) = now_us;
    calls.push_back("record");
    return {};
  }
  Result<double> elapsed_us(gpu::Event from, gpu::Event to) override {
    return *static_cast<double*>(to) - *static_cast<double*>(from);
  }

  // A kernel after `gap_us` in which the GPU waits for its launch.
  void kernel(double gap_us, double time_us) {
    now_us += gap_us;
    if (FakeCupti::now != nullptr) {
      FakeCupti::now->kernel("k", std::uint64_t(now_us * 1e3), ends(time_us));
    }
    now_us += time_us;
  }

  Status to_device(void*, const void*, std::size_t, Stream) override { return absent(); }
  Status to_host(void*, const void*, std::size_t, Stream) override { return absent(); }
  Status gemm(const Gemm&, Stream) override { return absent(); }
  Result<std::vector<std::shared_ptr<const gpu::Kernel>>> build(
      std::span<const gpu::KernelId>) override {
    return absent();
  }
  Status launch(const gpu::Kernel&, const gpu::LaunchShape&, const void*, std::size_t,
                Stream) override {
    return absent();
  }
  int gemm_choices() const override { return 0; }
  Result<std::shared_ptr<const gpu::PreparedGemm>> prepare(const Gemm&, int) override {
    return absent();
  }
  Status run(const gpu::PreparedGemm&, const Gemm&, void*, Stream) override { return absent(); }
  Status copy(void*, const void*, std::size_t, Stream) override { return absent(); }
  Result<Stream> create_stream() override { return absent(); }
  void destroy_stream(Stream) override {}
  Status wait(Stream, gpu::Event) override { return absent(); }
  Status begin_capture(Stream) override { return absent(); }
  Result<gpu::Graph> end_capture(Stream) override { return absent(); }
  Status launch(gpu::Graph, Stream) override { return absent(); }
  void destroy_graph(gpu::Graph) override {}
  std::string why_not_memory(const void*, std::size_t) const override { return {}; }

 private:
  std::uint64_t ends(double time_us) const { return std::uint64_t((now_us + time_us) * 1e3); }

  DeviceInfo info_;
  gpu::Limits limits_;
  double times_[4] = {};
};

class GpuClockTest : public testing::Test {
 protected:
  std::unique_ptr<GpuClock> opened(GpuClock::OpenTrace open_trace) {
    auto clock = GpuClock::open(device, std::move(open_trace));
    if (!clock.ok()) ADD_FAILURE() << clock.error().message;
    return clock.ok() ? std::move(clock.value()) : nullptr;
  }
  GpuClock::OpenTrace trace() {
    return
        [this] { return open_activity_trace(cupti.table(), GraphDetail::whole, probe_of(device)); };
  }
  double sample(GpuClock& clock) {
    if (!clock.begin_sample().ok()) ADD_FAILURE();
    device->kernel(20, 100);
    device->kernel(5, 50);
    const Result<double> time = clock.end_sample();
    return time.ok() ? *time : -1;
  }

  FakeCupti cupti;
  std::shared_ptr<FakeGpu> device = std::make_shared<FakeGpu>();
};

TEST_F(GpuClockTest, RecordsTimeFromTheFirstStartToTheLastEnd) {
  const auto clock = opened(trace());
  EXPECT_EQ(clock->source(), "CUPTI activity records");
  EXPECT_NEAR(sample(*clock), 155, 1e-3);
  EXPECT_NEAR(sample(*clock), 155, 1e-3);
  EXPECT_EQ(clock->source_changes(), 0);
}

TEST_F(GpuClockTest, EventsTimeAllBetweenThem) {
  const auto clock = opened([] { return unsupported("no libcupti.so.13"); });
  EXPECT_EQ(clock->source(), "CUDA events (no libcupti.so.13)");
  EXPECT_NEAR(sample(*clock), 175, 1e-3);
  // Complete before it begins and before it is read.
  EXPECT_THAT(device->calls, ElementsAre("synchronize", "record", "record", "synchronize"));
}

TEST_F(GpuClockTest, RefusalsFallBackToEventsWithTheirReason) {
  for (const auto& [result, name] : std::map<CUptiResult, const char*>{
           {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"},
           {CUPTI_ERROR_NOT_INITIALIZED, "CUPTI_ERROR_NOT_INITIALIZED"},
           {CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED,
            "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED"}}) {
    cupti.refused = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    cupti.enable_result = result;
    const auto clock = opened(trace());
    EXPECT_THAT(clock->source(), HasSubstr(std::string("CUDA events (cuptiActivityEnable "
                                                       "CONCURRENT_KERNEL: ") +
                                           name));
    EXPECT_NEAR(sample(*clock), 175, 1e-3);
    EXPECT_EQ(environment(*clock).at("timer"), clock->source());
    SourceNews news;
    const std::string line = news.read(*clock);
    EXPECT_EQ(line, "timed by " + clock->source());
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_EQ(news.read(*clock), "");  // once
  }
}

TEST_F(GpuClockTest, RecordsThatFailLaterHandOverToEvents) {
  const auto clock = opened(trace());
  SourceNews news;
  EXPECT_EQ(news.read(*clock), "timed by CUPTI activity records");
  EXPECT_NEAR(sample(*clock), 155, 1e-3);
  cupti.dropped = 3;
  EXPECT_NEAR(sample(*clock), 155, 1e-3);  // dropped between samples: none of ours
  ASSERT_TRUE(clock->begin_sample().ok());
  device->kernel(20, 100);
  cupti.dropped = 3;
  EXPECT_NEAR(*clock->end_sample(), 120, 1e-3);  // that sample too
  EXPECT_EQ(clock->source(), "CUDA events (CUPTI dropped 3 records)");
  EXPECT_EQ(clock->source_changes(), 1);
  EXPECT_EQ(news.read(*clock), "timed by CUDA events (CUPTI dropped 3 records)");
  EXPECT_TRUE(cupti.enabled.empty());  // nothing is recorded any more
}

TEST_F(GpuClockTest, AMeasurementHoldsSamplesOfOneSourceOnly) {
  const auto clock = opened(trace());
  int steps = 0;
  const Step step = [&]() -> Status {
    if (++steps == 12) cupti.dropped = 1;
    device->kernel(20, 300);
    return {};
  };
  MeasurePolicy policy{.min_sample_us = 0, .warmup_us = 0};
  const auto alone = measure(step, policy, *clock);
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  EXPECT_GT(steps, 12);
  EXPECT_EQ(clock->source_changes(), 1);
  for (const double time : alone->samples_us) EXPECT_NEAR(time, 320, 1e-3);

  const auto again = opened(trace());
  steps = 0;
  const Step steps_of_two[] = {step, step};
  const auto both = measure_interleaved(steps_of_two, policy, *again);
  ASSERT_TRUE(both.ok()) << both.error().message;
  EXPECT_EQ(again->source_changes(), 1);
  for (const Timing& timing : both->timings) {
    EXPECT_GE(timing.samples_us.size(), 10u);
    for (const double time : timing.samples_us) EXPECT_NEAR(time, 320, 1e-3);
  }
}

TEST_F(GpuClockTest, LendsTheProfilerAndTakesItBack) {
  const auto clock = opened(trace());
  EXPECT_NEAR(sample(*clock), 155, 1e-3);
  clock->set_aside([&] {
    EXPECT_TRUE(cupti.enabled.empty());  // counters need it for themselves
    device->kernel(20, 1000);
  });
  EXPECT_FALSE(cupti.enabled.empty());
  EXPECT_NEAR(sample(*clock), 155, 1e-3);
  EXPECT_EQ(clock->source(), "CUPTI activity records");
  EXPECT_EQ(clock->source_changes(), 0);

  clock->set_aside([&] {
    cupti.refused = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    cupti.enable_result = CUPTI_ERROR_NOT_INITIALIZED;
  });
  EXPECT_THAT(clock->source(), HasSubstr("CUPTI_ERROR_NOT_INITIALIZED"));
  EXPECT_EQ(clock->source_changes(), 1);
  EXPECT_NEAR(sample(*clock), 175, 1e-3);
  clock->set_aside([] {});  // by events there is nothing to lend, and nothing comes back
  EXPECT_EQ(clock->source_changes(), 1);
}

TEST_F(GpuClockTest, AFaultOfTheQueuedWorkEndsTheMeasurement) {
  const auto clock = opened(trace());
  const auto failed = measure(
      [&]() -> Status {
        device->kernel(1, 10);
        device->synchronized = Error{ErrorCode::internal, "an illegal address"};
        return {};
      },
      {}, *clock);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "an illegal address");
  EXPECT_TRUE(cupti.pushed.empty());  // the sample is ended nevertheless
}

TEST(OpenClock, TheMachinesOwnWhereNoGpuIs) {
  const auto device = rnntune::open_device("cpu");
  ASSERT_TRUE(device.ok());
  const auto clock = open_clock(*device);
  ASSERT_TRUE(clock.ok());
  EXPECT_EQ(clock->get(), &steady_clock());
  EXPECT_EQ(environment(**clock).count("timer"), 0u);
}

}  // namespace
}  // namespace rnntune::tuner
