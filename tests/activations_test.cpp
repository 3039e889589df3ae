// SPDX-License-Identifier: Apache-2.0
// Vector sigmoid and tanh on every instruction set: error against float64, saturation, NaN, signs,
// no subnormals.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/activations_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/activations-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rnntune::cpu {
namespace HWY_NAMESPACE {

void activate(const float* x, float* sigmoid, float* tanh, std::size_t count) {
  const F f;
  for (std::size_t i = 0; i < count; i += hn::Lanes(f)) {
    hn::StoreU(Math::sigmoid(hn::LoadU(f, x + i)), f, sigmoid + i);
    hn::StoreU(Math::tanh(hn::LoadU(f, x + i)), f, tanh + i);
  }
}

using Activate = decltype(&activate);
Activate get_activate() { return activate; }

}  // namespace HWY_NAMESPACE
}  // namespace rnntune::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/dispatch.hpp"
#include "kernels/simt/sanitizers.hpp"
#include "rnntune/device.hpp"

namespace rnntune::cpu {
namespace {

HWY_EXPORT(get_activate);

constexpr std::size_t kBlock = 1 << 12;

struct Block {
  std::vector<float> x = std::vector<float>(kBlock), sigmoid = x, tanh = x;
};

class ActivationsTest : public ::testing::TestWithParam<std::string> {
 protected:
  void run(Block& block) const {
    table_for(HWY_DISPATCH_TABLE(get_activate), HWY_TARGETS, GetParam())(
        block.x.data(), block.sigmoid.data(), block.tanh.data(), kBlock);
  }

  Block at(const std::vector<float>& values) const {
    Block block;
    std::copy(values.begin(), values.end(), block.x.begin());
    run(block);
    return block;
  }
};

bool subnormal(float value) { return std::fpclassify(value) == FP_SUBNORMAL; }

// Every 257th float, both signs: steps of 2^-15 relative, so no binade and no branch is missed. The
// sanitizers, under which each takes far longer, see steps of 2^-10.
#if defined(RNNTUNE_SIMT_ADDRESS_SANITIZER)
constexpr std::uint32_t kStep = 8209;
#else
constexpr std::uint32_t kStep = 257;
#endif

TEST_P(ActivationsTest, ErrorsStayBelowTheBound) {
  double sigmoid_error = 0, tanh_error = 0;
  const std::uint32_t end = std::bit_cast<std::uint32_t>(200.0f);
  for (const std::uint32_t sign : {0u, 0x80000000u}) {
    for (std::uint32_t bits = 0x00800000; bits < end;) {
      Block block;
      for (float& x : block.x) {
        x = std::bit_cast<float>(std::min(bits, end) | sign);
        bits += kStep;
      }
      run(block);
      for (std::size_t i = 0; i < kBlock; ++i) {
        const double x = block.x[i], s = 1 / (1 + std::exp(-x)), t = std::tanh(x);
        sigmoid_error = std::max(sigmoid_error, std::abs(block.sigmoid[i] - s));
        tanh_error = std::max(tanh_error, std::abs((block.tanh[i] - t) / t));
        ASSERT_FALSE(subnormal(block.sigmoid[i])) << x;
      }
    }
  }
  EXPECT_LT(sigmoid_error, kActivationError);
  EXPECT_LT(tanh_error, kActivationError);
  RecordProperty("sigmoid_error", std::to_string(sigmoid_error));
  RecordProperty("tanh_error", std::to_string(tanh_error));
}

// Case R05.
TEST_P(ActivationsTest, SaturatesExactly) {
  const float inf = std::numeric_limits<float>::infinity();
  const Block high = at({88, 89, 104, 1000, 3e38f, inf});
  const Block low = at({-88, -89, -104, -1000, -3e38f, -inf});
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(high.sigmoid[i], 1.0f) << high.x[i];
    EXPECT_EQ(high.tanh[i], 1.0f) << high.x[i];
    EXPECT_EQ(low.sigmoid[i], 0.0f) << low.x[i];
    EXPECT_EQ(low.tanh[i], -1.0f) << low.x[i];
  }
}

TEST_P(ActivationsTest, KeepsSignsAndNan) {
  const Block block = at({0.0f, -0.0f, std::numeric_limits<float>::quiet_NaN(), 1.0f});
  EXPECT_EQ(block.sigmoid[0], 0.5f);
  EXPECT_EQ(block.sigmoid[1], 0.5f);
  EXPECT_FALSE(std::signbit(block.tanh[0]));
  EXPECT_TRUE(std::signbit(block.tanh[1]));
  EXPECT_EQ(block.tanh[0], 0.0f);
  EXPECT_TRUE(std::isnan(block.sigmoid[2]));
  EXPECT_TRUE(std::isnan(block.tanh[2]));
  EXPECT_FALSE(std::isnan(block.tanh[3]));
}

INSTANTIATE_TEST_SUITE_P(Isa, ActivationsTest,
                         ::testing::ValuesIn((*open_device("cpu"))->info().isa),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace rnntune::cpu
#endif
