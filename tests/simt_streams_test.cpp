// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs of the emulated device: what they order is right under every seed, and
// what they do not is wrong under some.
#include <functional>
#include <thread>

#include "tests/simt_device_fixture.hpp"

namespace rnntune::simt {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::uint64_t kSeeds = 24;

// x and y take turns to be added to each other: 1 1, 2 1, 2 3, 5 3 ...
struct Turns {
  explicit Turns(std::uint64_t seed)
      : device(open({.seed = seed})),
        x(*device, std::vector<float>(5, 1.0f)),
        y(*device, std::vector<float>(5, 1.0f)) {}

  Status take(int turn, Stream stream) {
    return turn % 2 == 0 ? add(*device, y, x, 1, stream) : add(*device, x, y, 1, stream);
  }
  static float result(int turns) {
    float pair[] = {1, 1};
    for (int i = 0; i < turns; ++i) pair[i % 2] += pair[1 - i % 2];
    return pair[1 - turns % 2];
  }
  const Floats& last(int turns) const { return turns % 2 == 0 ? y : x; }

  std::shared_ptr<gpu::GpuDevice> device;
  Floats x, y;
};

class SeedTest : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, SeedTest, testing::Range<std::uint64_t>(0, kSeeds));

TEST_P(SeedTest, AStreamIsInOrder) {
  Turns turns(GetParam());
  for (int i = 0; i < 12; ++i) ASSERT_OK(turns.take(i, nullptr));
  EXPECT_THAT(turns.last(12).read(), Each(Turns::result(12)));
}

// Two streams and the null one, each waits for the one before - but for one turn, if not negative.
float over_streams(std::uint64_t seed, int without_wait) {
  constexpr int kTurns = 12;
  Turns turns(seed);
  gpu::GpuDevice& device = *turns.device;
  const Stream streams[] = {*device.create_stream(), *device.create_stream(), nullptr};
  const gpu::Event event = *device.create_event();
  for (int i = 0; i < kTurns; ++i) {
    const Stream stream = streams[i % 3];
    if (i > 0 && i != without_wait) {
      EXPECT_OK(device.wait(stream, event));
    }
    EXPECT_OK(turns.take(i, stream));
    EXPECT_OK(device.record(event, stream));
  }
  EXPECT_OK(device.wait(nullptr, event));
  device.destroy_event(event);
  const float result = turns.last(kTurns).read(nullptr)[0];
  device.destroy_stream(streams[0]);
  device.destroy_stream(streams[1]);
  return result;
}

TEST_P(SeedTest, EventsOrderStreams) { EXPECT_EQ(over_streams(GetParam(), -1), Turns::result(12)); }

TEST(SimtStreamsTest, AMissingWaitIsSeenUnderSomeSeed) {
  for (int turn = 1; turn < 12; ++turn) {
    int wrong = 0;
    for (std::uint64_t seed = 1; seed < kSeeds; ++seed) {
      wrong += over_streams(seed, turn) != Turns::result(12);
    }
    EXPECT_GT(wrong, 0) << "without the wait of turn " << turn;
    EXPECT_EQ(over_streams(0, turn), Turns::result(12)) << "in the order of the calls";
  }
}

TEST(SimtStreamsTest, ASeedAlwaysGivesTheSameOrder) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(over_streams(seed, 2), over_streams(seed, 2));
  }
}

TEST(SimtStreamsTest, SynchronizeWaitsForItsStreamOnly) {
  int early = 0;
  for (std::uint64_t seed = 1; seed < kSeeds; ++seed) {
    Turns turns(seed);
    gpu::GpuDevice& device = *turns.device;
    const Stream stream = *device.create_stream();
    ASSERT_OK(turns.take(0, stream));
    ASSERT_OK(device.synchronize());
    early += turns.x.read()[0] == 1.0f;
    ASSERT_OK(device.synchronize(stream));
    EXPECT_THAT(turns.x.read(), Each(2.0f));
    device.destroy_stream(stream);
  }
  EXPECT_GT(early, 0);
}

TEST(SimtStreamsTest, AnEventStandsForItsLastRecord) {
  Turns turns(0);
  gpu::GpuDevice& device = *turns.device;
  const Stream stream = *device.create_stream();
  const gpu::Event event = *device.create_event(), other = *device.create_event();
  EXPECT_OK(device.wait(stream, event)) << "never recorded: nothing to wait for";
  EXPECT_THAT(message(device.elapsed_us(event, other)), HasSubstr("from: was not recorded"));
  ASSERT_OK(device.record(event, stream));
  ASSERT_OK(turns.take(0, stream));
  ASSERT_OK(device.record(other, stream));
  EXPECT_THAT(message(device.elapsed_us(event, other)), HasSubstr("from: has not happened yet"));
  ASSERT_OK(device.synchronize(stream));
  const Result<double> time = device.elapsed_us(event, other);
  ASSERT_OK(time);
  EXPECT_GT(*time, 0.0);
  EXPECT_LT(*device.elapsed_us(other, event), 0.0);
  device.destroy_event(event);
  EXPECT_EQ(message(device.record(event, stream)), "event: is none of this device");
  device.destroy_stream(stream);
  EXPECT_EQ(message(device.synchronize(stream)), "stream: is none of this device");
  device.destroy_event(other);
}

TEST_P(SeedTest, ManyCallsWithoutWaiting) {
  Turns turns(GetParam());
  const Stream stream = *turns.device->create_stream();
  for (int i = 0; i < 9000; ++i) {
    ASSERT_OK(turns.device->fill(turns.x.data, 0, 20, i % 2 == 0 ? stream : nullptr));
  }
  EXPECT_THAT(turns.x.read(), Each(0.0f));
  turns.device->destroy_stream(stream);
}

TEST(SimtStreamsTest, TwoThreadsOnOneDevice) {
  Turns turns(5);
  const auto work = [&](const Floats& to) {
    const Floats one(*turns.device, std::vector<float>(5, 1.0f));
    const Stream stream = *turns.device->create_stream();
    for (int i = 0; i < 200; ++i) {
      EXPECT_OK(add(*turns.device, one, to, 1, stream));
      if (i % 16 == 0) {
        EXPECT_OK(turns.device->synchronize(stream));
      }
    }
    EXPECT_OK(turns.device->synchronize(stream));
    turns.device->destroy_stream(stream);
  };
  std::thread other(work, std::cref(turns.y));
  work(turns.x);
  other.join();
  EXPECT_THAT(turns.x.read(), Each(201.0f));
  EXPECT_THAT(turns.y.read(), Each(201.0f));
}

// ---- graphs

struct Captured : Turns {
  explicit Captured(std::uint64_t seed)
      : Turns(seed), main(*device->create_stream()), side(*device->create_stream()) {}
  ~Captured() {
    device->destroy_stream(main);
    device->destroy_stream(side);
    device->destroy_event(event);
  }
  const Stream main, side;
  const gpu::Event event = *device->create_event();
};

// Turns over two streams: each waits for the other's last.
Result<gpu::Graph> capture_turns(Captured& t, int turns) {
  EXPECT_OK(t.device->begin_capture(t.main));
  for (int i = 0; i < turns; ++i) {
    const Stream stream = i % 3 == 1 ? t.side : t.main;
    if (i > 0) {
      EXPECT_OK(t.device->wait(stream, t.event));
    }
    EXPECT_OK(t.take(i, stream));
    EXPECT_OK(t.device->record(t.event, stream));
  }
  EXPECT_OK(t.device->wait(t.main, t.event));
  return t.device->end_capture(t.main);
}

TEST_P(SeedTest, AGraphRunsWhenLaunchedOnWhatIsThereThen) {
  Captured t(GetParam());
  const Result<gpu::Graph> graph = capture_turns(t, 6);
  ASSERT_OK(graph);
  EXPECT_THAT(t.x.read(), Each(1.0f)) << "nothing runs between begin and end";
  EXPECT_THAT(t.y.read(), Each(1.0f));
  ASSERT_OK(t.device->launch(*graph, t.side));
  ASSERT_OK(t.device->launch(*graph, t.side));
  EXPECT_THAT(t.y.read(t.side), Each(Turns::result(12)));
  const std::vector<float> tens(5, 10.0f);
  ASSERT_OK(t.device->to_device(t.x.data, tens.data(), 20, t.main));
  ASSERT_OK(t.device->to_device(t.y.data, tens.data(), 20, t.main));
  ASSERT_OK(t.device->launch(*graph, t.main));
  EXPECT_THAT(t.y.read(t.main), Each(10 * Turns::result(6)));
  // Of two launches on two streams, too, one is behind the other.
  ASSERT_OK(t.device->to_device(t.x.data, tens.data(), 20, t.main));
  ASSERT_OK(t.device->to_device(t.y.data, tens.data(), 20, t.main));
  ASSERT_OK(t.device->launch(*graph, t.main));
  ASSERT_OK(t.device->launch(*graph, t.side));
  EXPECT_THAT(t.y.read(t.side), Each(10 * Turns::result(12)));
  t.device->destroy_graph(*graph);
  EXPECT_EQ(message(t.device->launch(*graph, t.main)), "graph: is none of this device");
}

TEST(SimtStreamsTest, BranchesOfAGraphAreNotOrdered) {
  int other = 0;
  for (std::uint64_t seed = 1; seed < kSeeds; ++seed) {
    Captured t(seed);
    ASSERT_OK(t.device->begin_capture(t.main));
    ASSERT_OK(t.device->record(t.event, t.main));
    ASSERT_OK(t.device->wait(t.side, t.event));
    ASSERT_OK(t.take(0, t.main));
    ASSERT_OK(t.take(1, t.side));
    ASSERT_OK(t.device->record(t.event, t.side));
    ASSERT_OK(t.device->wait(t.main, t.event));
    const Result<gpu::Graph> graph = t.device->end_capture(t.main);
    ASSERT_OK(graph);
    ASSERT_OK(t.device->launch(*graph, t.main));
    other += t.y.read(t.main)[0] == 2.0f;
    t.device->destroy_graph(*graph);
  }
  EXPECT_GT(other, 0);
  EXPECT_LT(other, static_cast<int>(kSeeds) - 1);
}

// What makes a capture fail, with its reason; the stream is usable after.
TEST(SimtStreamsTest, ACaptureThatFails) {
  const struct {
    const char* says;
    std::function<void(Captured&)> spoil;
  } rows[] = {
      {"synchronize on a stream that is captured",
       [](Captured& t) { EXPECT_FALSE(t.device->synchronize(t.main).ok()); }},
      {"copy to the host of 20 bytes on a stream that is captured",
       [](Captured& t) {
         float host[5];
         EXPECT_FALSE(t.device->to_host(host, t.x.data, 20, t.main).ok());
       }},
      {"allocate during a capture", [](Captured& t) { EXPECT_FALSE(t.device->allocate(4).ok()); }},
      {"copy of 24 bytes: to: ends after 20 bytes, expected 24",
       [](Captured& t) { EXPECT_FALSE(t.device->copy(t.x.data, t.y.data, 24, t.main).ok()); }},
      {"bytes, got 1",
       [](Captured& t) {
         const auto scale = kernel(*t.device, "rnntune::cuda::scale_add");
         EXPECT_FALSE(t.device->launch(*scale, {}, &t, 1, t.main).ok());
       }},
      {"gemm 9 x 9 x 9: a: ends after",
       [](Captured& t) {
         const Gemm gemm{false, false, 9, 9, 9, 1, t.x.data, 9, t.y.data, 9, 0, t.x.data, 9};
         EXPECT_FALSE(t.device->gemm(gemm, t.main).ok());
       }},
      {"wait for an event that was recorded outside of it",
       [](Captured& t) {
         EXPECT_OK(t.device->record(t.event, t.side));
         EXPECT_FALSE(t.device->wait(t.main, t.event).ok());
       }},
      {"the stream that it began on does not wait for launch of rnntune::cuda::scale_add of "
       "another stream",
       [](Captured& t) {
         EXPECT_OK(t.device->record(t.event, t.main));
         EXPECT_OK(t.device->wait(t.side, t.event));
         EXPECT_OK(t.take(1, t.side));
       }},
      {"the null stream waits for one of its events",
       [](Captured& t) {
         EXPECT_OK(t.device->record(t.event, t.main));
         EXPECT_FALSE(t.device->wait(nullptr, t.event).ok());
       }},
      {"it was begun twice",
       [](Captured& t) { EXPECT_FALSE(t.device->begin_capture(t.main).ok()); }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.says);
    Captured t(1);
    ASSERT_OK(t.device->begin_capture(t.main));
    ASSERT_OK(t.take(0, t.main));
    row.spoil(t);
    const Result<gpu::Graph> graph = t.device->end_capture(t.main);
    ASSERT_FALSE(graph.ok());
    EXPECT_THAT(message(graph), testing::AllOf(HasSubstr("capture failed: "), HasSubstr(row.says)));
    EXPECT_THAT(t.x.read(t.main), Each(1.0f));
    for (const Stream stream : {t.main, t.side}) {
      ASSERT_OK(t.take(0, stream));
      ASSERT_OK(t.device->synchronize(stream));
    }
    EXPECT_THAT(t.x.read(), Each(3.0f));
    const Result<gpu::Graph> again = capture_turns(t, 6);
    ASSERT_OK(again);
    t.device->destroy_graph(*again);
  }
}

TEST(SimtStreamsTest, CapturesHaveABeginAndAnEnd) {
  Captured t(0);
  EXPECT_EQ(message(t.device->begin_capture(nullptr)),
            "capture: expected a stream, got the null stream");
  EXPECT_EQ(message(t.device->end_capture(t.main)), "capture: none was begun on this stream");
  ASSERT_OK(t.device->begin_capture(t.main));
  ASSERT_OK(t.device->record(t.event, t.main));
  const Result<gpu::Graph> empty = t.device->end_capture(t.main);
  ASSERT_OK(empty);
  EXPECT_OK(t.device->launch(*empty, t.main));
  EXPECT_EQ(message(t.device->wait(t.main, t.event)),
            "event: was recorded in a capture that has ended");
  t.device->destroy_graph(*empty);
  // One on a stream that is destroyed meanwhile is gone with it.
  const Stream stream = *t.device->create_stream();
  ASSERT_OK(t.device->begin_capture(stream));
  t.device->destroy_stream(stream);
  EXPECT_OK(t.device->synchronize());
}

TEST(SimtStreamsTest, AGraphThatOutlivesItsMemory) {
  Captured t(0);
  auto gone = std::make_unique<Floats>(*t.device, 5);
  ASSERT_OK(t.device->begin_capture(t.main));
  ASSERT_OK(t.device->copy(t.x.data, gone->data, 20, t.main));
  const Result<gpu::Graph> graph = t.device->end_capture(t.main);
  ASSERT_OK(graph);
  gone.reset();
  ASSERT_OK(t.device->launch(*graph, t.main));
  EXPECT_EQ(message(t.device->synchronize(t.main)),
            "copy of 20 bytes: from: is not memory of the device");
  t.device->destroy_graph(*graph);
}

}  // namespace
}  // namespace rnntune::simt
