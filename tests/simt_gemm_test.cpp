// SPDX-License-Identifier: Apache-2.0
// The emulated device's product against the definition, and what it refuses.
#include <array>
#include <cmath>
#include <limits>

#include "simt/gemm.hpp"
#include "tests/simt_device_fixture.hpp"

namespace rnntune::simt {
namespace {

using testing::HasSubstr;

std::vector<float> random_floats(std::size_t count, std::uint32_t state) {
  std::vector<float> values(count);
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / float(1 << 23) - 1.0f;
  }
  return values;
}

// op(X)(row, column) of a column-major matrix.
double at(const std::vector<float>& x, bool transpose, std::int64_t ld, std::int64_t row,
          std::int64_t column) {
  return x[static_cast<std::size_t>(transpose ? row * ld + column : column * ld + row)];
}

struct Matrices {
  Matrices(gpu::GpuDevice& device, const Gemm& g)
      : a_host(random_floats(static_cast<std::size_t>(g.lda * (g.transpose_a ? g.m : g.k)), 1)),
        b_host(random_floats(static_cast<std::size_t>(g.ldb * (g.transpose_b ? g.k : g.n)), 2)),
        c_host(random_floats(static_cast<std::size_t>(g.ldc * g.n), 3)),
        a(device, a_host),
        b(device, b_host),
        c(device, c_host) {}

  Gemm with(Gemm g) const {
    g.a = a.data;
    g.b = b.data;
    g.c = c.data;
    return g;
  }
  // Of C, by the definition; elements that are no part of it keep their value.
  void expect_product(const Gemm& g) const {
    const std::vector<float> result = c.read();
    for (std::int64_t j = 0; j < g.n; ++j) {
      for (std::int64_t i = 0; i < g.ldc; ++i) {
        const auto place = static_cast<std::size_t>(j * g.ldc + i);
        double expected = c_host[place];
        if (i < g.m) {
          double sum = 0;
          for (std::int64_t k = 0; k < g.k; ++k) {
            sum += at(a_host, g.transpose_a, g.lda, i, k) * at(b_host, g.transpose_b, g.ldb, k, j);
          }
          expected = double(g.alpha) * sum + (g.beta == 0 ? 0 : double(g.beta) * expected);
        }
        ASSERT_NEAR(result[place], expected, 4e-6) << "row " << i << " of column " << j;
      }
    }
  }

  const std::vector<float> a_host, b_host, c_host;
  const Floats a, b, c;
};

Gemm shape(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
           std::int64_t extra) {
  Gemm g{transpose_a, transpose_b, m, n, k, 1, nullptr, 0, nullptr, 0, 0, nullptr, 0};
  g.lda = (transpose_a ? k : m) + extra;
  g.ldb = (transpose_b ? n : k) + 2 * extra;
  g.ldc = m + 3 * extra;
  return g;
}

// Every transposition, leading dimension and choice, with the factors that have a meaning of their
// own.
TEST(SimtGemmTest, IsTheProduct) {
  const auto device = open({.seed = 1});
  const std::array<float, 2> factors[] = {{1, 0}, {1, 1}, {-0.5f, 0.25f}, {0, 0.5f}, {0, 0}};
  for (int variant = 0; variant < 8 * (kGemmChoices + 1); ++variant) {
    Gemm g = shape(variant & 1, variant & 2, 7, 5, 11, variant & 4 ? 3 : 0);
    const int choice = variant / 8;
    for (const auto& [alpha, beta] : factors) {
      SCOPED_TRACE(testing::Message() << "variant " << variant << ", alpha " << alpha);
      g.alpha = alpha;
      g.beta = beta;
      const Matrices matrices(*device, g);
      const auto prepared = device->prepare(matrices.with(g), choice);
      ASSERT_OK(prepared);
      const Floats workspace(*device, (*prepared)->workspace_bytes() / sizeof(float));
      EXPECT_EQ(workspace.count == 0, choice == 0);
      ASSERT_OK(device->run(**prepared, matrices.with(g), workspace.data, nullptr));
      matrices.expect_product(g);
    }
  }
}

TEST(SimtGemmTest, EdgesOfSizes) {
  const auto device = open();
  for (const auto [m, n, k] : {std::array{1, 1, 1},
                               {1, 300, 2},
                               {300, 1, 2},
                               {2, 2, 300},
                               {3, 2, 0},
                               {0, 2, 3},
                               {2, 0, 3}}) {
    SCOPED_TRACE(testing::Message() << m << " " << n << " " << k);
    const Gemm g = shape(false, false, m, n, k, 1);
    const Matrices matrices(*device, g);
    ASSERT_OK(device->gemm(matrices.with(g)));
    matrices.expect_product(g);
  }
}

TEST(SimtGemmTest, WhatIsNotReadMayBeNotANumber) {
  const auto device = open();
  const Floats nan(*device, 16);
  const Floats b(*device, std::vector<float>(16, 1.0f)), c(*device, std::vector<float>(16, 1.0f));
  ASSERT_OK(device->gemm({false, false, 4, 4, 4, 1, b.data, 4, b.data, 4, 0, nan.data, 4}));
  EXPECT_THAT(nan.read(), testing::Each(4.0f));
  ASSERT_OK(device->gemm({false, false, 4, 4, 4, 0, nullptr, 4, nullptr, 4, 2, c.data, 4}));
  EXPECT_THAT(c.read(), testing::Each(2.0f));
}

TEST(SimtGemmTest, NotANumberIsPassedOn) {
  const auto device = open();
  const Floats nan(*device, 1), zero(*device, std::vector{0.0f}), c(*device, std::vector{1.0f});
  ASSERT_OK(device->gemm({false, false, 1, 1, 1, 1, nan.data, 1, zero.data, 1, 1, c.data, 1}));
  EXPECT_TRUE(std::isnan(c.read()[0]));
}

TEST(SimtGemmTest, Refusals) {
  const auto device = open();
  const Gemm plain = shape(false, false, 4, 4, 4, 0);
  const Matrices matrices(*device, plain);
  const Gemm good = matrices.with(plain);
  std::vector<float> host(16);
  const auto refused = [&](auto change) {
    Gemm g = good;
    change(g);
    return message(device->gemm(g));
  };
  EXPECT_EQ(refused([&](Gemm& g) { g.a = host.data(); }),
            "gemm 4 x 4 x 4: a: is not memory of the device");
  EXPECT_EQ(refused([&](Gemm& g) { g.b = host.data(); }),
            "gemm 4 x 4 x 4: b: is not memory of the device");
  EXPECT_EQ(refused([&](Gemm& g) { g.c = host.data(); }),
            "gemm 4 x 4 x 4: c: is not memory of the device");
  EXPECT_EQ(refused([](Gemm& g) { g.b += 1; }),
            "gemm 4 x 4 x 4: b: ends after 60 bytes, expected 64");
  EXPECT_THAT(refused([](Gemm& g) { g.ldc = 5; }),
              HasSubstr("c: ends after 64 bytes, expected 76"));
  EXPECT_THAT(refused([](Gemm& g) { g.lda = 3; }), HasSubstr("lda"));
  EXPECT_THAT(refused([](Gemm& g) { g.m = -1; }), HasSubstr("m"));
  EXPECT_THAT(refused([](Gemm& g) {
                g.a = reinterpret_cast<const float*>(reinterpret_cast<const char*>(g.a) + 1);
              }),
              HasSubstr("a: is not aligned to 4 bytes"));
  const std::int64_t huge = std::numeric_limits<int>::max();
  EXPECT_THAT(refused([=](Gemm& g) { g.ldb = huge, g.n = huge, g.ldc = huge; }),
              HasSubstr("b: ends after"));
  EXPECT_OK(device->synchronize());
}

TEST(SimtGemmTest, RunsOnlyWhatWasPrepared) {
  const auto device = open();
  const Gemm plain = shape(false, true, 4, 4, 4, 0);
  const Matrices matrices(*device, plain);
  const Gemm good = matrices.with(plain);
  EXPECT_EQ(message(device->prepare(good, kGemmChoices + 1)), "choice: expected 0 to 2, got 3");
  EXPECT_FALSE(device->prepare(shape(false, false, -4, 4, 4, 9), 0).ok());
  const auto prepared = *device->prepare(good, 1);
  const Floats workspace(*device, prepared->workspace_bytes() / sizeof(float));
  const auto run = [&](const Gemm& g, void* memory) {
    return message(device->run(*prepared, g, memory, nullptr));
  };
  EXPECT_THAT(run(good, nullptr), HasSubstr("workspace: is not memory of the device"));
  EXPECT_THAT(run(good, workspace.data + 1), HasSubstr("workspace: ends after"));
  Gemm other = good;
  other.transpose_b = false;
  EXPECT_THAT(run(other, workspace.data), HasSubstr("transpose_b: expected 1, as was prepared"));
  other = good;
  other.n = 3;
  EXPECT_THAT(run(other, workspace.data), HasSubstr("n: expected 4, as was prepared, got 3"));
  const Floats larger(*device, 32);
  other = good;
  other.c = larger.data + 1;
  EXPECT_THAT(run(other, workspace.data), HasSubstr("c: expected memory aligned to 16 bytes"));
  other.c = larger.data + 4;
  EXPECT_EQ(run(other, workspace.data), "ok");
  EXPECT_OK(device->synchronize());
}

// Two streams may not share a workspace: under some seed the result is wrong.
TEST(SimtGemmTest, AWorkspaceIsNotForTwoStreams) {
  const Gemm plain = shape(false, false, 3, 3, 6, 0);
  const auto wrong = [&](std::uint64_t seed, bool shared) {
    const auto device = open({.seed = seed});
    const Matrices first(*device, plain), second(*device, plain);
    EXPECT_OK(device->fill(second.a.data, 0, second.a.count * sizeof(float)));
    EXPECT_OK(device->synchronize());
    const auto prepared = *device->prepare(first.with(plain), 2);
    const std::size_t count = prepared->workspace_bytes() / sizeof(float);
    const Floats workspace(*device, count), own(*device, count);
    const Stream stream = *device->create_stream();
    EXPECT_OK(device->run(*prepared, first.with(plain), workspace.data, nullptr));
    EXPECT_OK(
        device->run(*prepared, second.with(plain), shared ? workspace.data : own.data, stream));
    EXPECT_OK(device->synchronize(stream));
    const bool zero = second.c.read() == std::vector<float>(9, 0.0f);
    device->destroy_stream(stream);
    return !zero || first.c.read()[0] == 0.0f;
  };
  int found = 0;
  for (std::uint64_t seed = 1; seed < 24; ++seed) {
    EXPECT_FALSE(wrong(seed, false));
    found += wrong(seed, true);
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace rnntune::simt
