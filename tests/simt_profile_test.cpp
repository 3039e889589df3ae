// SPDX-License-Identifier: Apache-2.0
// Sectors and wavefronts of kernels that are small enough to count by hand.
#include <algorithm>
#include <fstream>
#include <numeric>

#include "simt/profile.hpp"
#include "tests/simt_device_fixture.hpp"

namespace rnntune::simt {
namespace {

#if defined(RNNTUNE_SIMT_RACE_CHECKER)

// "simt_kernels.cuh:38", the line with the mark.
std::string line_of(const std::string& mark) {
  std::ifstream file(RNNTUNE_SIMT_KERNELS);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find("// [" + mark + "]") != line.npos) {
      return "simt_kernels.cuh:" + std::to_string(number);
    }
  }
  return "no mark " + mark;
}

MemoryLine find(const Profile& profile, const std::string& mark) {
  const std::vector<MemoryLine> lines = profile.lines();
  const std::string line = line_of(mark);
  const auto found = std::find_if(lines.begin(), lines.end(),
                                  [&](const MemoryLine& one) { return one.line == line; });
  if (found != lines.end()) return *found;
  ADD_FAILURE() << "nothing of " << mark << " on " << line;
  return {};
}

std::shared_ptr<Profile> profile_of_stride(int stride) {
  const auto profile = std::make_shared<Profile>();
  const auto device = open({.checked = true, .profile = profile});
  const Floats from(*device, std::vector<float>(32 * 33, 1.0f)), to(*device, 32);
  const cuda::StrideArguments arguments{from.data, to.data, stride};
  for (int i = 0; i < 3; ++i) {
    EXPECT_OK(device->launch(*kernel(*device, "rnntune::cuda::strided"), {.block = {32}},
                             &arguments, sizeof arguments, nullptr));
  }
  EXPECT_OK(device->synchronize());
  return profile;
}

void expect(const MemoryLine& line, bool shared, Access access, std::uint64_t bytes,
            std::uint64_t transactions, std::uint64_t ideal) {
  SCOPED_TRACE(line.line);
  EXPECT_EQ(line.kernel, "rnntune::cuda::strided");
  EXPECT_EQ(line.shared, shared);
  EXPECT_EQ(line.access, access);
  EXPECT_EQ(line.requests, 3u);
  EXPECT_EQ(line.bytes, 3 * bytes);
  EXPECT_EQ(line.transactions, 3 * transactions);
  EXPECT_EQ(line.ideal, 3 * ideal);
}

TEST(SimtProfileTest, SectorsAndBankConflicts) {
  const struct {
    int stride;
    std::uint64_t sectors, ideal_sectors, wavefronts;
  } rows[] = {{0, 1, 1, 1},  {1, 4, 4, 1},  {2, 8, 4, 2},    {3, 12, 4, 1},
              {4, 16, 4, 4}, {8, 32, 4, 8}, {32, 32, 4, 32}, {33, 32, 4, 1}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.stride);
    const auto profile = profile_of_stride(row.stride);
    EXPECT_EQ(profile->launches().at("rnntune::cuda::strided"), 3u);
    expect(find(*profile, "strided read"), false, Access::read, 128, row.sectors,
           row.ideal_sectors);
    expect(find(*profile, "strided tile"), true, Access::write, 128, row.wavefronts, 1);
    expect(find(*profile, "vector tile"), true, Access::read, 512, 4, 4);
    expect(find(*profile, "plain write"), false, Access::write, 128, 4, 4);
  }
}

// A warp that is not full, and more blocks than one: 3 blocks of 40 threads, four floats each.
TEST(SimtProfileTest, TailsAndBlocks) {
  const auto profile = std::make_shared<Profile>();
  const auto device = open({.seed = 3, .checked = true, .profile = profile});
  const Floats x(*device, std::vector<float>(480, 1.0f)), y(*device, std::vector<float>(480, 1.0f));
  const cuda::ScaleArguments arguments{x.data, y.data, 1, 480};
  ASSERT_OK(device->launch(*kernel(*device, "rnntune::cuda::scale_add"),
                           {.grid = {3}, .block = {40}}, &arguments, sizeof arguments, nullptr));
  EXPECT_THAT(y.read(), testing::Each(2.0f));
  std::uint64_t bytes[2] = {}, requests[2] = {}, sectors[2] = {};
  for (const MemoryLine& line : profile->lines()) {
    const bool write = line.access == Access::write;
    EXPECT_FALSE(line.shared);
    bytes[write] += line.bytes;
    requests[write] += line.requests;
    sectors[write] += line.transactions;
    EXPECT_EQ(line.excess(), 1.0) << line.line;
  }
  EXPECT_EQ(bytes[0], 2 * 480 * sizeof(float));
  EXPECT_EQ(bytes[1], 480 * sizeof(float));
  EXPECT_EQ(requests[0], 2u * 3 * 2);
  EXPECT_EQ(requests[1], 1u * 3 * 2);
  EXPECT_EQ(sectors[0], 2u * 480 / 8);
  EXPECT_EQ(sectors[1], 480u / 8);
}

#else

TEST(SimtProfileTest, SectorsAndBankConflicts) {
  GTEST_SKIP() << "accesses are counted of kernels compiled with -fsanitize=thread, which this "
                  "build's sanitizers exclude";
}

#endif

}  // namespace
}  // namespace rnntune::simt
