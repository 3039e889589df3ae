// SPDX-License-Identifier: Apache-2.0
// The CPU device: what it says of the machine, its memory, its BLAS table, and the team of threads.
#include "rnntune/device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "kernels/cpu/cpu_info.hpp"
#include "kernels/cpu/team.hpp"
#include "kernels/device/blas.hpp"

namespace rnntune {
namespace {

using ::testing::HasSubstr;

TEST(DeviceTest, DescribesTheMachine) {
  auto device = open_device("cpu");
  ASSERT_TRUE(device.ok()) << device.error().message;
  const DeviceInfo& info = (*device)->info();
  EXPECT_EQ(info.backend, "cpu");
  ASSERT_FALSE(info.isa.empty());
  EXPECT_THAT(info.architecture, HasSubstr("/" + info.isa.front()));
  EXPECT_EQ(info.threads, cpu::default_threads().count);
  EXPECT_EQ(info.threads_from, cpu::default_threads().from);
  EXPECT_EQ((*open_device("cpu", {3, ""}))->info().threads_from, "the option");
  EXPECT_GT(info.memory_bytes, 0);
  for (const char* part : {"vendor=", "family=", "model=", "isa=", "l2_bytes=", "threads="}) {
    EXPECT_THAT(info.key, HasSubstr(part));
  }
}

TEST(DeviceTest, KeyTellsThreadLimitsAndInstructionSetsApart) {
  const std::string key = (*open_device("cpu"))->info().key;
  EXPECT_EQ(key, (*open_device("cpu"))->info().key);
  EXPECT_NE(key, (*open_device("cpu", {77, ""}))->info().key);
  const std::vector<std::string> isa = (*open_device("cpu"))->info().isa;
  for (std::size_t i = 0; i < isa.size(); ++i) {
    auto capped = open_device("cpu", {0, isa[i]});
    ASSERT_TRUE(capped.ok());
    EXPECT_EQ((*capped)->info().isa.front(), isa[i]);
    EXPECT_EQ((*capped)->info().isa.size(), isa.size() - i);
    EXPECT_EQ((*capped)->info().key == key, i == 0);
  }
}

TEST(DeviceTest, RefusesWhatItDoesNotKnow) {
  for (const char* name : {"gpu", "cpu:0", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999"}) {
    const auto device = open_device(name);
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(device.error().message,
              "device: expected one of cpu, cuda, cuda:N, got '" + std::string(name) + "'");
  }
  const auto isa = open_device("cpu", {0, "mmx"});
  ASSERT_FALSE(isa.ok());
  EXPECT_THAT(isa.error().message, HasSubstr("isa: expected one of "));
  EXPECT_THAT(isa.error().message, HasSubstr("got 'mmx'"));
  const auto threads = open_device("cpu", {-1, ""});
  ASSERT_FALSE(threads.ok());
  EXPECT_THAT(threads.error().message, HasSubstr("got -1"));
}

TEST(DeviceTest, ListsEveryBackEndOrSaysWhyNot) {
  const auto list = list_devices();
  ASSERT_TRUE(list.ok()) << list.error().message;
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[0].backend, "cpu");
  EXPECT_EQ((*list)[0].devices.at(0).key, (*open_device("cpu"))->info().key);
  const BackendDevices& cuda = (*list)[1];
  EXPECT_EQ(cuda.backend, "cuda");
  EXPECT_NE(cuda.devices.empty(), cuda.absent.empty());
  EXPECT_EQ(cuda.absent.find('\n'), std::string::npos) << "one line";
  const auto many = open_device("cuda:4096");
  ASSERT_FALSE(many.ok());
  EXPECT_THAT(many.error().message, testing::StartsWith("device cuda:4096: "));
  if (!cuda.absent.empty()) {
    EXPECT_THAT(many.error().message, testing::EndsWith(cuda.absent));
  }
  EXPECT_THAT(list_devices({0, "mmx"}).error().message, HasSubstr("got 'mmx'"));
}

TEST(DeviceTest, MemoryIsAlignedAndFailureNamesTheBytes) {
  const auto device = *open_device("cpu");
  for (const std::size_t bytes : {0u, 1u, 63u, 4097u, 3u << 20}) {
    auto memory = device->allocate(bytes);
    ASSERT_TRUE(memory.ok());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*memory) % 64, 0u);
    if (bytes >= (2u << 20)) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*memory) % (2u << 20), 0u);
    }
    ASSERT_TRUE(device->fill(*memory, 0xA5, bytes).ok());
    std::vector<unsigned char> host(bytes), again(bytes, 1);
    ASSERT_TRUE(device->to_host(host.data(), *memory, bytes).ok());
    for (const unsigned char byte : host) ASSERT_EQ(byte, 0xA5);
    ASSERT_TRUE(device->to_device(*memory, again.data(), bytes).ok());
    ASSERT_TRUE(device->to_host(host.data(), *memory, bytes).ok());
    EXPECT_EQ(host, again);
    device->release(*memory);
  }
  for (const std::size_t bytes :
       {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() / 2}) {
    const auto memory = device->allocate(bytes);
    ASSERT_FALSE(memory.ok());
    EXPECT_EQ(memory.error().code, ErrorCode::out_of_memory);
    EXPECT_THAT(memory.error().message, HasSubstr(std::to_string(bytes)));
  }
}

class QuotaTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  const std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) /
      ("quota-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "-" +
       std::to_string(getpid()));
};

TEST_F(QuotaTest, UnlimitedIsZero) {
  EXPECT_EQ(cpu::cgroup_quota(root_), 0);
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/cpu.max", "max 100000");
  EXPECT_EQ(cpu::cgroup_quota(root_), 0);
}

TEST_F(QuotaTest, Version2TakesTheSmallestOfAllParentsInWholeCores) {
  write("proc/self/cgroup", "0::/pod/job");
  write("sys/fs/cgroup/pod/job/cpu.max", "800000 100000");
  write("sys/fs/cgroup/pod/cpu.max", "250000 100000");
  EXPECT_EQ(cpu::cgroup_quota(root_), 2);
  write("sys/fs/cgroup/pod/cpu.max", "150000 100000");
  EXPECT_EQ(cpu::cgroup_quota(root_), 1);
  write("sys/fs/cgroup/pod/cpu.max", "50000 100000");
  EXPECT_EQ(cpu::cgroup_quota(root_), 1);
}

TEST_F(QuotaTest, Version1) {
  write("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "200000");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cpu::cgroup_quota(root_), 2);
}

class OmpThreadsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* value = std::getenv("OMP_NUM_THREADS")) before_ = value;
  }
  void TearDown() override { set(before_ ? before_->c_str() : nullptr); }
  static void set(const char* value) {
    value ? setenv("OMP_NUM_THREADS", value, 1) : unsetenv("OMP_NUM_THREADS");
  }

  std::optional<std::string> before_;
};

TEST_F(OmpThreadsTest, IsTheDefaultLimit) {
  set(nullptr);
  const cpu::DefaultThreads without = cpu::default_threads();
  EXPECT_NE(without.from, "OMP_NUM_THREADS");
  for (const char* no_number : {"", "0", "-2", "many", "2x", "99999999999999999999", "1000000"}) {
    set(no_number);
    EXPECT_EQ(cpu::default_threads().count, without.count) << no_number;
  }
  if (without.count < 2) GTEST_SKIP() << "one core: no limit is smaller";
  for (const char* one : {"1", "1,4", " 1 "}) {
    set(one);
    EXPECT_EQ(cpu::default_threads().count, 1) << one;
    EXPECT_EQ(cpu::default_threads().from, "OMP_NUM_THREADS");
    EXPECT_EQ((*open_device("cpu"))->info().threads, 1) << one;
    EXPECT_EQ((*open_device("cpu", {2, ""}))->info().threads, 2) << "asked for";
  }
}

// C = alpha op(A) op(B) + beta C in double, one loop nest.
std::vector<double> naive(const Gemm& g, const std::vector<float>& c) {
  std::vector<double> out(c.begin(), c.end());
  for (std::int64_t j = 0; j < g.n; ++j) {
    for (std::int64_t i = 0; i < g.m; ++i) {
      double sum = 0;
      for (std::int64_t p = 0; p < g.k; ++p) {
        sum += double(g.a[g.transpose_a ? p + i * g.lda : i + p * g.lda]) *
               double(g.b[g.transpose_b ? j + p * g.ldb : p + j * g.ldb]);
      }
      double& at = out[std::size_t(i + j * g.ldc)];
      at = g.alpha * sum + (g.beta == 0 ? 0 : g.beta * at);
    }
  }
  return out;
}

struct GemmCase {
  Gemm gemm;
  std::vector<float> a, b, c;

  GemmCase(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb, float beta, int pad) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-1, 1);
    gemm = {.transpose_a = ta, .transpose_b = tb, .m = m, .n = n, .k = k};
    gemm.lda = (ta ? k : m) + pad;
    gemm.ldb = (tb ? n : k) + pad;
    gemm.ldc = m + pad;
    gemm.beta = beta;
    a.resize(std::size_t(gemm.lda * (ta ? m : k)));
    b.resize(std::size_t(gemm.ldb * (tb ? k : n)));
    c.resize(std::size_t(gemm.ldc * n));
    for (auto* tensor : {&a, &b, &c}) {
      for (float& value : *tensor) value = uniform(random);
    }
    // beta = 0 must not read C.
    if (beta == 0) std::fill(c.begin(), c.end(), std::numeric_limits<float>::quiet_NaN());
    gemm.a = a.data();
    gemm.b = b.data();
    gemm.c = c.data();
  }
};

// Every element within the rounding of k products, and the padding between columns untouched.
void expect_product(const GemmCase& test, const std::vector<double>& expected) {
  const Gemm& g = test.gemm;
  const double bound = 1e-6 * (double(g.k) + 2);
  for (std::int64_t j = 0; j < g.n; ++j) {
    for (std::int64_t i = 0; i < g.ldc; ++i) {
      const std::size_t at = std::size_t(i + j * g.ldc);
      if (i < g.m) {
        ASSERT_NEAR(test.c[at], expected[at], bound) << "row " << i << " column " << j;
      } else if (g.beta != 0) {
        ASSERT_EQ(double(test.c[at]), expected[at]) << "padding at column " << j;
      } else {
        ASSERT_TRUE(std::isnan(test.c[at])) << "padding at column " << j;
      }
    }
  }
}

template <class Run>
void each_gemm(Run run) {
  constexpr std::int64_t kSizes[][3] = {{1, 1, 1},    {1, 40, 3},  {37, 1, 64},  {7, 5, 3},
                                        {64, 33, 17}, {3, 101, 1}, {130, 19, 48}};
  for (const auto& size : kSizes) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        for (const float beta : {0.0f, 1.0f}) {
          for (const int pad : {0, 5}) {
            GemmCase test(size[0], size[1], size[2], ta, tb, beta, pad);
            SCOPED_TRACE(testing::Message()
                         << size[0] << "x" << size[1] << "x" << size[2] << " ta " << ta << " tb "
                         << tb << " beta " << beta << " pad " << pad);
            const std::vector<double> expected = naive(test.gemm, test.c);
            run(test.gemm);
            expect_product(test, expected);
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(BlasTest, EveryLibraryComputesTheProduct) {
  if (blas_libraries().empty()) GTEST_SKIP() << absent_blas().front();
  for (const Blas& blas : blas_libraries()) {
    SCOPED_TRACE(blas.name + " " + blas.version);
    EXPECT_EQ(find_blas(blas.name), &blas);
    each_gemm([&](const Gemm& g) { blas.sgemm(g); });
  }
}

TEST(BlasTest, SlicesInOneTeamMakeTheWholeProduct) {
  if (blas_libraries().empty()) GTEST_SKIP() << absent_blas().front();
  for (const Blas& blas : blas_libraries()) {
    SCOPED_TRACE(blas.name);
    for (const int threads : {2, 3}) {
      each_gemm([&](const Gemm& g) {
        cpu::run_team(threads, [&](const cpu::Member& member) {
          blas.sgemm(slice_gemm(g, member.count, member.id));
        });
      });
    }
  }
}

TEST(BlasTest, DoublePrecision) {
  const Blas* const blas = find_blas("openblas");
  if (blas == nullptr) GTEST_SKIP() << "no OpenBLAS";
  const double a[] = {1, 2, 3, 4, 5, 6};  // 2x3 by columns
  const double b[] = {1, 0, 2, 1, 3, 0};  // 3x2
  double c[] = {10, 20, 30, 40};
  blas->dgemm(
      {.m = 2, .n = 2, .k = 3, .a = a, .lda = 2, .b = b, .ldb = 3, .beta = 1, .c = c, .ldc = 2});
  EXPECT_THAT(c, testing::ElementsAre(21, 34, 40, 54));
}

TEST(BlasTest, DeviceGemmChecksItsArguments) {
  const auto device = *open_device("cpu");
  if (best_blas() == nullptr) {
    EXPECT_EQ(device->gemm({}).error().code, ErrorCode::unsupported);
    GTEST_SKIP() << absent_blas().front();
  }
  each_gemm([&](const Gemm& g) { ASSERT_TRUE(device->gemm(g).ok()); });
  GemmCase test(4, 3, 2, false, false, 0, 0);
  test.gemm.lda = 3;
  EXPECT_EQ(device->gemm(test.gemm).error().message, "gemm: lda: expected at least 4, got 3");
  test.gemm.lda = 4;
  test.gemm.k = -1;
  EXPECT_EQ(device->gemm(test.gemm).error().message, "gemm: k: expected at least 0, got -1");
}

TEST(TeamTest, SplitCoversEverythingOnce) {
  for (const std::int64_t n : {0, 1, 15, 16, 17, 100, 1001}) {
    for (const int parts : {1, 2, 3, 7}) {
      for (const std::int64_t grain : {1, 16}) {
        std::int64_t at = 0;
        for (int id = 0; id < parts; ++id) {
          const cpu::Range range = cpu::split(n, parts, id, grain);
          EXPECT_EQ(range.begin, at);
          EXPECT_LE(range.size(), (n + parts - 1) / parts + grain);
          at = range.end;
        }
        EXPECT_EQ(at, n);
      }
    }
  }
}

TEST(TeamTest, OneThreadRunsInPlace) {
  const auto self = std::this_thread::get_id();
  const int before = omp_get_max_threads();
  cpu::run_team(1, [&](const cpu::Member& member) {
    EXPECT_EQ(std::this_thread::get_id(), self);
    EXPECT_EQ(member.count, 1);
    EXPECT_EQ(omp_get_max_threads(), 1) << "a BLAS called here would leave this thread";
    member.wait();
  });
  EXPECT_EQ(omp_get_max_threads(), before);
}

// Each thread writes its slot without synchronisation of its own and reads all after the barrier.
void exercise(int count, const cpu::Member& member, std::vector<int>& slots, bool& wrong) {
  for (int round = 1; round <= 300; ++round) {
    slots[std::size_t(member.id)] = round;
    member.wait();
    for (int i = 0; i < count; ++i) {
      if (slots[std::size_t(i)] != round) wrong = true;
    }
    member.wait();
  }
}

TEST(TeamTest, BarrierOrdersWritesOfPlainThreads) {
  for (const int count : {2, 3, 5}) {
    cpu::Barrier barrier;
    std::vector<int> slots(std::size_t(count), 0);
    std::vector<std::thread> threads;
    bool wrong[5] = {};
    for (int id = 0; id < count; ++id) {
      threads.emplace_back([&, id] { exercise(count, {id, count, &barrier}, slots, wrong[id]); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const bool w : wrong) EXPECT_FALSE(w);
  }
}

TEST(TeamTest, FewerThreadsThanAskedStillCoverTheWork) {
  constexpr int kCount = 1000;
  std::vector<int> done(kCount, 0);
  const auto mark = [&](const cpu::Member& member) {
    const cpu::Range range = cpu::split(kCount, member.count, member.id);
    for (std::int64_t i = range.begin; i < range.end; ++i) ++done[std::size_t(i)];
    member.wait();
  };
  cpu::run_team(4, mark);
  // A region inside a region has one thread by default.
#pragma omp parallel num_threads(2)
#pragma omp single
  cpu::run_team(4, mark);
  EXPECT_EQ(std::accumulate(done.begin(), done.end(), 0), 2 * kCount);
}

}  // namespace
}  // namespace rnntune
