// SPDX-License-Identifier: Apache-2.0
#include "call_memory.hpp"

#include <gtest/gtest.h>

#include "tests/host_gpu.hpp"

namespace rnntune {
namespace {

class CallMemoryTest : public testing::Test {
 protected:
  CallMemoryTest() { memory_.resize(2); }

  // A call with these two arrays; whether it may go on.
  bool call(const void* a, const void* b, std::size_t bytes) {
    memory_.begin();
    const bool first = memory_.why_not(gpu_, a, bytes).empty();
    return memory_.why_not(gpu_, b, bytes).empty() && first;
  }

  fakes::HostGpu gpu_;
  void* const x_ = *gpu_.allocate(100);
  void* const y_ = *gpu_.allocate(100);
  CallMemory memory_;
};

TEST_F(CallMemoryTest, WhatTheLastCallPassedIsNotAskedForAgain) {
  EXPECT_TRUE(call(x_, y_, 80));
  EXPECT_EQ(gpu_.questions, 2);
  EXPECT_TRUE(call(x_, y_, 80));
  EXPECT_TRUE(call(x_, y_, 40)) << "a shorter sequence";
  EXPECT_EQ(gpu_.questions, 2);
}

TEST_F(CallMemoryTest, OtherPlacesAndMoreBytesAre) {
  EXPECT_TRUE(call(x_, y_, 80));
  EXPECT_TRUE(call(y_, x_, 80));
  EXPECT_EQ(gpu_.questions, 4);
  EXPECT_TRUE(call(y_, x_, 100));
  EXPECT_EQ(gpu_.questions, 6);
  EXPECT_FALSE(call(y_, x_, 101));
}

TEST_F(CallMemoryTest, WhatIsRefusedStaysSo) {
  const float host = 0;
  EXPECT_TRUE(call(x_, y_, 4));
  EXPECT_FALSE(call(x_, &host, 4));
  EXPECT_FALSE(call(x_, &host, 4));
  EXPECT_EQ(gpu_.questions, 4);
  EXPECT_TRUE(call(x_, y_, 4));
}

TEST_F(CallMemoryTest, AbsentArraysKeepTheirPlace) {
  EXPECT_TRUE(call(nullptr, y_, 4));
  EXPECT_EQ(gpu_.questions, 1);
  EXPECT_TRUE(call(x_, y_, 4));
  EXPECT_TRUE(call(nullptr, y_, 4));
  EXPECT_EQ(gpu_.questions, 2);
}

}  // namespace
}  // namespace rnntune
