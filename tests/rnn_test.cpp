// SPDX-License-Identifier: Apache-2.0
// The public entry: which arguments it refuses and how, what it remembers of a reserve, and its
// sizes.
#include "rnntune/rnn.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "space.hpp"

namespace rnntune {
namespace {

using ::testing::HasSubstr;

class Block {
 public:
  explicit Block(std::size_t bytes) : memory_(bytes + 64) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory_.data());
    start_ = memory_.data() + (64 - at % 64) % 64;
    bytes_ = bytes;
  }
  Memory memory() { return {start_, bytes_}; }

 private:
  std::vector<std::byte> memory_;
  std::byte* start_;
  std::size_t bytes_;
};

RnnOptions no_databases() {
  RnnOptions options;
  options.default_databases = false;
  return options;
}

// One problem with everything a step needs.
class Fixture {
 public:
  explicit Fixture(const char* problem)
      : rnn(*Rnn::create(*parse_problem(problem), *open_device("cpu"), no_databases())),
        packed(rnn.packed_bytes()),
        workspace(rnn.workspace_bytes()),
        reserve(rnn.reserve_bytes()) {
    const Problem& p = rnn.problem();
    const TensorCounts n = tensor_counts(p);
    const std::int64_t widest = std::max(p.input, p.hidden);
    x.assign(n.x, 0.5f);
    y.assign(n.y, 0);
    weights.assign(4 * p.hidden * widest, 0.1f);
    for (std::int64_t l = 0; l < p.layers; ++l) {
      layers.push_back({weights.data(), weights.data(), weights.data(), weights.data(), nullptr});
      gradients.push_back(
          {weights.data(), weights.data(), weights.data(), weights.data(), nullptr});
    }
  }

  Buffers buffers() { return {packed.memory(), workspace.memory(), reserve.memory()}; }
  Status pack() { return rnn.pack(layers.data(), packed.memory()); }
  Status forward(Mode mode = Mode::training) {
    return rnn.forward(mode, {.x = x.data(), .y = y.data()}, buffers());
  }
  Status backward_data() {
    return rnn.backward_data({.x = x.data(), .y = y.data(), .dy = y.data()}, buffers());
  }
  Status backward_weights() {
    return rnn.backward_weights({.x = x.data(), .y = y.data(), .gradients = gradients.data()},
                                buffers());
  }

  Rnn rnn;
  Block packed, workspace, reserve;
  std::vector<float> x, y, weights;
  std::vector<LayerWeights> layers;
  std::vector<LayerGradients> gradients;
};

void expect_refused(const Status& status, const char* names) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(status.error().message, HasSubstr(names));
}

TEST(RnnTest, RunsAStep) {
  Fixture f("lstm:L2,T5,B3,I4,H6");
  ASSERT_TRUE(f.pack().ok());
  ASSERT_TRUE(f.forward().ok());
  ASSERT_TRUE(f.backward_data().ok());
  EXPECT_TRUE(f.backward_weights().ok());
  EXPECT_TRUE(f.backward_weights().ok()) << "gradients accumulate, so it may run again";
}

// Case R22: a reserve serves one backward of the forward that wrote it, and nothing else.
TEST(RnnTest, GuardsTheReserve) {
  Fixture f("lstm:L1,T1,B1,I1,H1");
  ASSERT_TRUE(f.pack().ok());
  expect_refused(f.backward_data(), "reserve written by a training forward");
  ASSERT_TRUE(f.forward(Mode::inference).ok());
  expect_refused(f.backward_data(), "reserve written by a training forward");
  ASSERT_TRUE(f.forward().ok());
  expect_refused(f.backward_weights(), "that backward_data left");
  ASSERT_TRUE(f.backward_data().ok());
  expect_refused(f.backward_data(), "once");
  EXPECT_TRUE(f.backward_weights().ok());

  Fixture other("lstm:L1,T2,B1,I1,H1");
  ASSERT_TRUE(other.pack().ok());
  ASSERT_TRUE(f.forward().ok());
  Buffers mixed = other.buffers();
  mixed.reserve = f.reserve.memory();
  mixed.reserve.bytes = other.rnn.reserve_bytes();
  expect_refused(other.rnn.backward_data(
                     {.x = other.x.data(), .y = other.y.data(), .dy = other.y.data()}, mixed),
                 "reserve written by a training forward of the same shape");
}

TEST(RnnTest, RefusesSmallAndMisalignedBuffers) {
  Fixture f("lstm:L2,T3,B2,I4,H5");
  ASSERT_TRUE(f.pack().ok());
  const auto forward = [&](Buffers b) {
    return f.rnn.forward(Mode::training, {.x = f.x.data(), .y = f.y.data()}, b);
  };
  Buffers b = f.buffers();
  --b.reserve.bytes;
  expect_refused(forward(b), "reserve needs");
  b = f.buffers();
  --b.workspace.bytes;
  expect_refused(forward(b), "workspace needs");
  b = f.buffers();
  b.packed.data = nullptr;
  expect_refused(forward(b), "packed must not be null");
  b = f.buffers();
  b.workspace.data = static_cast<std::byte*>(b.workspace.data) + 4;
  expect_refused(forward(b), "workspace must be aligned to 64 bytes");
}

TEST(RnnTest, RefusesBadArguments) {
  Fixture f("lstm:L2,T3,B2,I4,H5");
  expect_refused(f.rnn.pack(nullptr, f.packed.memory()), "layers must not be null");
  f.layers[1].bias_hh = nullptr;
  expect_refused(f.pack(), "layers[1].bias_hh must not be null");
  f.layers[1].bias_hh = f.weights.data();
  ASSERT_TRUE(f.pack().ok());
  const auto forward = [&](Forward args) {
    return f.rnn.forward(Mode::training, args, f.buffers());
  };
  expect_refused(forward({.x = nullptr, .y = f.y.data()}), "x must not be null");
  expect_refused(forward({.x = f.x.data(), .y = nullptr}), "y must not be null");
  expect_refused(forward({.time = 4, .x = f.x.data(), .y = f.y.data()}), "time must be 1 to T = 3");
  expect_refused(forward({.time = -1, .x = f.x.data(), .y = f.y.data()}), "got -1");
  expect_refused(forward({.batch = 3, .x = f.x.data(), .y = f.y.data()}), "batch must be 1 to B");
  const char* odd = reinterpret_cast<const char*>(f.x.data()) + 1;
  expect_refused(forward({.x = reinterpret_cast<const float*>(odd), .y = f.y.data()}),
                 "x must be aligned");
}

TEST(RnnTest, RefusesProblemsAndConfigsByReason) {
  auto device = *open_device("cpu");
  Problem zero{.time = 0};
  EXPECT_EQ(Rnn::create(zero, device).error().message, "T must be at least 1, got 0");
  const auto gru = Rnn::create(*parse_problem("gru:T2,B2,I2,H2"), device, no_databases());
  ASSERT_FALSE(gru.ok());
  EXPECT_EQ(gru.error().code, ErrorCode::unsupported);
  RnnOptions options = no_databases();
  options.config = *parse_config("cell:threads=1");
  const auto rnn = Rnn::create(*parse_problem("lstm:T2,B2,I2,H2"), device, options);
  ASSERT_FALSE(rnn.ok());
  EXPECT_THAT(rnn.error().message, HasSubstr("is missing"));
  EXPECT_FALSE(Rnn::create(*parse_problem("lstm:T2,B2,I2,H2"), nullptr).ok());
}

// Cases R03 and R13: sizes that never wrap, and are not far above the need.
TEST(RnnTest, SizesAreExactAndGrowWithTheProblem) {
  auto device = *open_device("cpu", {1, ""});
  const auto sizes = [&](const std::string& text) {
    return *Rnn::create(*parse_problem(text), device, no_databases());
  };
  const Rnn small = sizes("lstm:L4,T600,I60,H128,B582"), big = sizes("lstm:L4,T600,I60,H128,B583");
  EXPECT_GT(small.reserve_bytes(), std::size_t{4} << 30);
  EXPECT_NEAR(double(big.reserve_bytes()) / 583 * 582 / double(small.reserve_bytes()), 1, 1e-3);
  const Rnn r13 = sizes("lstm:T1,B20758,I500,H500");
  const double need = 4.0 * 20758 * 512 * (4 + 1 + 2);  // gates, tanh(c), c before and after
  EXPECT_LE(double(r13.reserve_bytes()), 2 * need);
  const auto absurd = Rnn::create(Problem{.time = 1 << 30, .batch = 1 << 30, .hidden = 1 << 30},
                                  device, no_databases());
  ASSERT_FALSE(absurd.ok());
  EXPECT_EQ(absurd.error().code, ErrorCode::size_overflow);
}

TEST(RnnTest, DifferentPlansRunConcurrently) {
  std::vector<std::thread> threads;
  std::vector<float> first(4);
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([i, &first] {
      Fixture f("lstm:L1,T20,B4,I8,H16");
      for (int step = 0; step < 20; ++step)
        if (!f.pack().ok() || !f.forward().ok() || !f.backward_data().ok()) return;
      first[i] = f.y.front();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(first[0], 0);
  for (const float value : first) EXPECT_EQ(value, first[0]);
}

}  // namespace
}  // namespace rnntune
