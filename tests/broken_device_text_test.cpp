// SPDX-License-Identifier: Apache-2.0
// Real kernels with one fault each, made by break_text.py in tests/meson.build: the checker that is
// for it must find it, and nothing in the kernel as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cuda/arguments.hpp"
#include "simt/device.hpp"
#include "tests/simt_device_kernels.hpp"
#include "tests/simt_kernels.cuh"

namespace rnntune::simt {

std::span<const KernelEntry> broken_kernels();
std::span<const KernelEntry> late_kernels();

namespace {

using testing::HasSubstr;

class BrokenTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  void TearDown() override {
    for (float* const memory : memory_) device_->release(memory);
  }

  void open(std::span<const KernelEntry> kernels) {
    TearDown();
    memory_.clear();
    device_ = open_simt({.seed = GetParam(), .checked = true}, {kernels.begin(), kernels.end()});
  }

  // Memory of the device of exactly this size, which holds ones.
  float* ones(std::size_t count) {
    const std::vector<float> values(count, 1.0f);
    auto* const memory = static_cast<float*>(*device_->allocate(count * sizeof(float)));
    EXPECT_TRUE(device_->to_device(memory, values.data(), count * sizeof(float)).ok());
    memory_.push_back(memory);
    return memory;
  }

  template <class Arguments>
  std::string launch(const char* file, const char* expression, const gpu::LaunchShape& shape,
                     const Arguments& arguments) {
    const gpu::KernelId id{file, expression};
    const auto kernel = device_->build({&id, 1});
    if (!kernel.ok()) return kernel.error().message;
    Status status = device_->launch(*kernel->front(), shape, &arguments, sizeof arguments, nullptr);
    if (status.ok()) status = device_->synchronize();
    return status.ok() ? "" : status.error().message;
  }

  // Two whole tiles, so that no bound matters, in thb: of a block each, or one after the other.
  std::string forward_tile(unsigned blocks = 2) {
    constexpr int kBatch = 32, kHidden = 64;
    cuda::PointwiseForwardArguments a;
    a.gates = ones(4 * kHidden * kBatch);
    a.gate_stride = kHidden * kBatch;
    a.ld = kBatch;
    a.c = ones(kHidden * kBatch);
    a.h = ones(kHidden * kBatch);
    a.batch = kBatch;
    a.hidden = kHidden;
    return launch("pointwise_tile.cuh", "rnntune::cuda::pointwise_forward_tile<true>",
                  {.grid = {1, blocks}, .block = {32, 4}}, a);
  }

  // The gradients in the order of the gates, or in the other one.
  std::string backward_tile(bool turned, unsigned blocks = 2) {
    constexpr int kBatch = 32, kHidden = 64;
    cuda::PointwiseBackwardArguments a;
    a.gates = ones(4 * kHidden * kBatch);
    a.gate_stride = kHidden * kBatch;
    a.ld = kBatch;
    a.c = ones(kHidden * kBatch);
    a.dy = ones(kHidden * kBatch);
    a.dc_out = ones(kHidden * kBatch);
    a.turned = ones(4 * kHidden * kBatch);
    a.turned_gate_stride = kHidden;
    a.turned_ld = 4 * kHidden;
    a.direct = ones(4 * kHidden * kBatch);
    a.direct_gate_stride = a.gate_stride;
    a.direct_ld = a.ld;
    a.batch = kBatch;
    a.hidden = kHidden;
    return launch("pointwise_tile.cuh",
                  turned ? "rnntune::cuda::pointwise_backward_tile<true, false, true, false>"
                         : "rnntune::cuda::pointwise_backward_tile<true, true, false, false>",
                  {.grid = {1, blocks}, .block = {32, 4}}, a);
  }

  // 34 units, the last ones beyond a warp.
  std::string forward() {
    constexpr int kBatch = 3, kHidden = 34;
    cuda::PointwiseForwardArguments a;
    a.gates = ones(4 * kHidden * kBatch);
    a.gate_stride = kHidden;
    a.ld = 4 * kHidden;
    a.c = ones(kHidden * kBatch);
    a.h = ones(kHidden * kBatch);
    a.batch = kBatch;
    a.hidden = kHidden;
    return launch("pointwise.cuh", "rnntune::cuda::pointwise_forward<1, false>",
                  {.grid = {2}, .block = {32, 4}}, a);
  }

  // Two blocks that exchange what they compute over four steps.
  std::string ring() {
    constexpr int kWords = 100;
    const auto words = [&] { return reinterpret_cast<unsigned*>(ones(kWords)); };
    const cuda::RingArguments a{words(), words(), words(), kWords, 4};
    return launch("simt_kernels.cuh", "rnntune::cuda::ring<rnntune::cuda::Fault::none>",
                  {.grid = {2}, .block = {16}, .cooperative = true}, a);
  }

  std::string sums(const char* expression, unsigned blocks) {
    cuda::BiasGradientArguments a;
    a.dgates = ones(20 * 20);
    a.ld = a.rows = a.columns = 20;
    a.db = ones(20);
    return launch("bias_gradient.cuh", expression, {.grid = {blocks}, .block = {32, 8}}, a);
  }

  std::string addition() {
    constexpr int kColumns = 37;
    cuda::OperationArguments a;
    a.a = ones(kColumns);
    a.b = ones(kColumns);
    a.y = ones(kColumns);
    a.rows = 1;
    a.columns = kColumns;
    return launch("operations.cuh", "rnntune::cuda::apply<rnntune::cuda::Add>",
                  {.grid = {1}, .block = {32, 1}}, a);
  }

  std::string transposition(int rows) {
    cuda::TransposeArguments<float> a;
    a.from = ones(static_cast<std::size_t>(rows) * 20);
    a.to = ones(static_cast<std::size_t>(rows) * 20);
    a.rows = rows;
    a.columns = 20;
    return launch("pointwise_tile.cuh", "rnntune::cuda::transpose<float>",
                  {.grid = {1}, .block = {32, 4}}, a);
  }

  std::shared_ptr<gpu::GpuDevice> device_;
  std::vector<float*> memory_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, BrokenTest, testing::Values(0, 1, 2, 3));

constexpr const char* kSumColumns = "rnntune::cuda::bias_gradient_tbh<false>";
constexpr const char* kSumRows = "rnntune::cuda::bias_gradient_thb<false>";

TEST_P(BrokenTest, NothingIsFoundInTheKernelsAsTheyAre) {
  open(checked_kernels());
  EXPECT_EQ(forward_tile(), "");
  EXPECT_EQ(backward_tile(true), "");
  EXPECT_EQ(sums(kSumColumns, 1), "");
  EXPECT_EQ(sums(kSumRows, 3), "");
  EXPECT_EQ(addition(), "");
  EXPECT_EQ(forward(), "");
  EXPECT_EQ(forward_tile(1), "");
  EXPECT_EQ(backward_tile(false, 1), "");
  EXPECT_EQ(transposition(20), "");
  EXPECT_EQ(transposition(64), "");
  open(checked_test_kernels());
  EXPECT_EQ(ring(), "");
}

TEST_P(BrokenTest, AMissingBarrierOfATile) {
  open(broken_kernels());
  EXPECT_THAT(forward_tile(), HasSubstr("race"));
  open(broken_kernels());
  EXPECT_THAT(backward_tile(true), HasSubstr("race"));
}

// Each of them by itself: with a block for each tile nothing comes after.
TEST_P(BrokenTest, AMissingBarrierBetweenTiles) {
  for (const auto& run : {std::function([&] { return forward_tile(1); }),
                          std::function([&] { return backward_tile(false, 1); }),
                          std::function([&] { return transposition(64); })}) {
    open(late_kernels());
    EXPECT_THAT(run(), HasSubstr("race"));
  }
  open(late_kernels());
  EXPECT_EQ(forward_tile(2), "");
}

TEST_P(BrokenTest, AMissingBarrierOfTheGrid) {
  open(broken_kernels());
  EXPECT_THAT(ring(),
              testing::AllOf(HasSubstr("race"), HasSubstr("of block 0"), HasSubstr("of block 1")));
}

TEST_P(BrokenTest, AnElementThatTwoThreadsWrite) {
  open(broken_kernels());
  EXPECT_THAT(forward(), testing::AllOf(HasSubstr("race: write by"), HasSubstr("after write by")));
}

TEST_P(BrokenTest, AMissingBarrierOfASum) {
  open(broken_kernels());
  EXPECT_THAT(sums(kSumColumns, 1), HasSubstr("race"));
}

TEST_P(BrokenTest, ASumThatEveryLaneAdds) {
  open(broken_kernels());
  EXPECT_THAT(sums(kSumRows, 3), HasSubstr("race"));
}

TEST_P(BrokenTest, AColumnTooMany) {
  open(broken_kernels());
  EXPECT_THAT(addition(), HasSubstr("is not memory of the device"));
}

TEST_P(BrokenTest, ARowOfATileTooMany) {
  open(broken_kernels());
  EXPECT_THAT(transposition(20), HasSubstr("is not memory of the device"));
}

}  // namespace
}  // namespace rnntune::simt
