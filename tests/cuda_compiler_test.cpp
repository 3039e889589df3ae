// SPDX-License-Identifier: Apache-2.0
// Compiling kernels: in parallel, cached on disk, and the real text by the real NVRTC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <thread>

#include "kernels/cuda/compile_all.hpp"
#include "kernels/cuda/compiler.hpp"
#include "kernels/cuda/cubin_cache.hpp"
#include "kernels/cuda/instances.hpp"
#include "tests/fake_cuda.hpp"

namespace rnntune::cuda {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr KernelText kTexts[] = {{"a.cuh", "text of a"}};
const gpu::KernelId kKernel{"a.cuh", "a<float>"};

class CompilerTest : public testing::Test {
 protected:
  void SetUp() override {
    reset_fake_cuda();
    fs::create_directories(folder_);
  }
  void TearDown() override {
    std::error_code none;
    fs::permissions(folder_, fs::perms::owner_all, none);
    fs::remove_all(folder_);
  }
  Compiler compiler(std::span<const KernelText> texts = kTexts, int threads = 2) const {
    return Compiler(fake_nvrtc(), texts, folder_.string(), threads);
  }
  // Compiles again, and tells whether the compiler was asked.
  bool compiles(const Compiler& with, const gpu::KernelId& kernel = kKernel,
                const std::string& architecture = "sm_90") {
    const std::size_t before = fake_cuda().compiled.size();
    const Result<Binary> binary = with.compile(kernel, architecture);
    EXPECT_TRUE(binary.ok());
    if (binary.ok()) {
      EXPECT_EQ(binary->lowered_name, "lowered " + kernel.expression);
      EXPECT_THAT(binary->cubin, HasSubstr("cubin of " + kernel.expression));
      EXPECT_EQ(binary->from_cache, fake_cuda().compiled.size() == before);
    }
    return fake_cuda().compiled.size() > before;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path());
    return found;
  }

  const fs::path folder_ =
      fs::path(testing::TempDir()) /
      ("cubins-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) +
       "-" + std::to_string(getpid()));
};

TEST_F(CompilerTest, KeepsWhatItCompiled) {
  EXPECT_TRUE(compiles(compiler()));
  EXPECT_FALSE(compiles(compiler()));
  EXPECT_TRUE(compiles(compiler(), kKernel, "sm_80")) << "another architecture";
  EXPECT_TRUE(compiles(compiler(), {"a.cuh", "a<double>"})) << "another instantiation";
  constexpr KernelText kEdited[] = {{"a.cuh", "text of A"}};
  EXPECT_TRUE(compiles(compiler(kEdited))) << "another text";
  Nvrtc newer = fake_nvrtc();
  newer.nvrtcVersion = [](int* major, int* minor) {
    *major = 13;
    *minor = 1;
    return NVRTC_SUCCESS;
  };
  EXPECT_TRUE(compiles(Compiler(newer, kTexts, folder_.string(), 1))) << "another compiler";
  EXPECT_FALSE(compiles(compiler()));
  EXPECT_EQ(files().size(), 5u);
}

TEST_F(CompilerTest, UsageComesBackFromTheCache) {
  fake_cuda().compiler_log =
      "ptxas info    : Compiling entry function 'lowered a<float>' for 'sm_90'\n"
      "ptxas info    : Function properties for lowered a<float>\n"
      "    8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 2048 bytes smem\n";
  for (const bool cached : {false, true}) {
    const Result<Binary> binary = compiler().compile(kKernel, "sm_90");
    ASSERT_TRUE(binary.ok());
    EXPECT_EQ(binary->from_cache, cached);
    EXPECT_EQ(binary->usage.registers, 40);
    EXPECT_EQ(binary->usage.barriers, 1);
    EXPECT_EQ(binary->usage.static_shared_bytes, 2048);
    EXPECT_EQ(binary->usage.stack_bytes, 8);
    EXPECT_EQ(binary->usage.spill_store_bytes, 16);
    EXPECT_EQ(binary->usage.spill_load_bytes, 24);
  }
  EXPECT_EQ(parse_ptxas_log(fake_cuda().compiler_log, "another").registers, 0);
}

TEST_F(CompilerTest, DamagedFilesAreCompiledAgain) {
  ASSERT_TRUE(compiles(compiler()));
  const fs::path file = files().at(0);
  std::stringstream whole;
  whole << std::ifstream(file, std::ios::binary).rdbuf();
  const std::string good = whole.str();
  std::vector<std::string> damaged = {"", "x", good + "x"};
  for (std::size_t size = 0; size < good.size(); size += 7) damaged.push_back(good.substr(0, size));
  for (std::size_t at = 0; at < good.size(); at += 11) {
    damaged.push_back(good);
    damaged.back()[at] ^= 1;
  }
  for (const std::string& text : damaged) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
    ASSERT_TRUE(compiles(compiler()));
    ASSERT_FALSE(compiles(compiler())) << "and kept again";
  }
  // The file of another key: two keys with one hash.
  ASSERT_TRUE(compiles(compiler(), {"a.cuh", "b<int>"}));
  for (const fs::path& other : files()) {
    if (other != file) fs::rename(other, file);
  }
  EXPECT_TRUE(compiles(compiler()));
}

TEST_F(CompilerTest, AFolderThatCannotBeWrittenCostsTimeOnly) {
  fs::remove_all(folder_);
  std::ofstream(folder_) << "a file where the folder should be";
  EXPECT_TRUE(compiles(compiler()));
  EXPECT_TRUE(compiles(compiler()));
  fs::remove(folder_);
  EXPECT_TRUE(compiles(Compiler(fake_nvrtc(), kTexts, "", 1)));
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(CompilerTest, AFolderWithoutPermissionCostsTimeOnly) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_TRUE(compiles(compiler()));
  EXPECT_TRUE(compiles(compiler()));
}

TEST_F(CompilerTest, WritersDoNotDisturbEachOther) {
  const std::string cubin(100000, 'x');
  std::atomic<int> read{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 4; ++writer) {
    threads.emplace_back([&] {
      for (int round = 0; round < 40; ++round) {
        save_binary(folder_.string(), "one key", {"name", cubin, "log"});
        const auto found = load_binary(folder_.string(), "one key");
        ++(found ? read : wrong);
        if (found && found->cubin != cubin) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read, 160);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(files().size(), 1u) << "no temporary file is left";
}

TEST_F(CompilerTest, CompilesInParallelAndInOrder) {
  // Each of two compilations waits for the other: one after the other would never end.
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  bool together = false;
  fake_cuda().while_compiling = [&] {
    std::unique_lock lock(mutex);
    if (++inside == 2) together = true;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(20), [&] { return together; });
  };
  const gpu::KernelId kernels[] = {{"a.cuh", "first"}, {"a.cuh", "second"}};
  const auto binaries = compiler().compile(kernels, "sm_90");
  ASSERT_TRUE(binaries.ok());
  EXPECT_TRUE(together);
  EXPECT_EQ((*binaries)[0].lowered_name, "lowered first");
  EXPECT_EQ((*binaries)[1].lowered_name, "lowered second");
}

TEST_F(CompilerTest, AFailureNamesTheKernelAndCarriesTheLog) {
  fake_cuda().failures = {{"second", NVRTC_ERROR_COMPILATION}};
  fake_cuda().compiler_log = "a.cuh(7): error: no such thing\n";
  std::vector<gpu::KernelId> kernels = {{"a.cuh", "first"}, {"a.cuh", "second"}};
  for (int i = 0; i < 50; ++i) kernels.push_back({"a.cuh", "later" + std::to_string(i)});
  const auto binaries = compiler(kTexts, 1).compile(kernels, "sm_90");
  ASSERT_FALSE(binaries.ok());
  EXPECT_EQ(binaries.error().message,
            "kernel second of a.cuh (--gpu-architecture=sm_90 --std=c++20 --ptxas-options=-v): "
            "nvrtcCompileProgram: NVRTC as asked\na.cuh(7): error: no such thing");
  EXPECT_EQ(fake_cuda().compiled.size(), 2u) << "what had not begun is left";
  EXPECT_THAT(fake_cuda().alive, IsEmpty());
  EXPECT_EQ(files().size(), 1u) << "a failure is not kept";
}

TEST(OccupancyTest, CountsAsTheToolkitDoes) {
  const gpu::Limits& h100 = *limits_of("sm_90");
  EXPECT_EQ(h100.shared_bytes_per_block, 227 * 1024);
  EXPECT_EQ(limits_of("sm_1"), nullptr);
  EXPECT_EQ(limits_of("sm_70")->shared_bytes_per_block, 96 * 1024) << "the driver keeps none";
  const KernelUsage few{.registers = 64, .static_shared_bytes = 8448}, many{.registers = 128};
  EXPECT_EQ(residency(few, h100, 256, 0).blocks, 4);
  EXPECT_EQ(residency(few, h100, 256, 0).limit, "registers");
  EXPECT_EQ(residency(few, *limits_of("sm_75"), 256, 0).blocks, 4) << "all of its threads";
  EXPECT_EQ(residency(many, h100, 256, 100 * 1024).blocks, 2);
  EXPECT_EQ(residency(many, *limits_of("sm_80"), 256, 100 * 1024).blocks, 1);
  EXPECT_EQ(residency(many, *limits_of("sm_80"), 256, 100 * 1024).limit, "shared memory");
  EXPECT_EQ(residency(many, *limits_of("sm_89"), 256, 100 * 1024).blocks, 0);
  EXPECT_EQ(residency(many, *limits_of("sm_70"), 256, 96 * 1024).blocks, 1);
  EXPECT_EQ(residency({.registers = 255}, h100, 1024, 0).blocks, 0);
  EXPECT_EQ(residency({.registers = 16}, h100, 32, 0).limit, "blocks");
}

// The text as it ships, by the compiler as it is here.
TEST(NvrtcTest, CompilesEveryKernelForEveryArchitecture) {
  const auto nvrtc = open_nvrtc(cuda_library_folders(""));
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.error().message;
  std::vector<ToCompile> kernels;
  for (const gpu::KernelId& kernel : kernel_instances()) kernels.push_back({kernel});
  int told = 0;
  const auto rows = compile_all(
      kernels, {.architectures = {"sm_80", "sm_90", "sm_120"}, .data_folder{}, .cache_folder{}},
      [&](const Compiled&) { ++told; });
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  ASSERT_EQ(rows->size(), 3 * kernels.size());
  EXPECT_EQ(told, int(rows->size()));
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const Compiled& row = (*rows)[i];
    SCOPED_TRACE(row.architecture + " " + row.kernel.expression);
    EXPECT_EQ(row.error, "");
    EXPECT_EQ(row.kernel, kernels[i / 3].kernel);
    EXPECT_GT(row.usage.registers, 0);
    EXPECT_GT(row.resident_blocks, 0);
  }
}

TEST(NvrtcTest, SaysWhatIsWrongWithTheText) {
  const auto nvrtc = open_nvrtc(cuda_library_folders(""));
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.error().message;
  constexpr KernelText kBroken[] = {
      {"broken.cuh", "template <class T> __global__ void broken(T* x) { *x = missing; }"}};
  const Compiler compiler(*nvrtc, kBroken, "", 1);
  const auto binary = compiler.compile({"broken.cuh", "broken<float>"}, "sm_90");
  ASSERT_FALSE(binary.ok());
  EXPECT_THAT(binary.error().message, AllOf(HasSubstr("kernel broken<float> of broken.cuh"),
                                            HasSubstr("broken.cuh(1)"), HasSubstr("missing")));
  const auto unknown = compiler.compile({"broken.cuh", "broken<float>"}, "sm_1");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("--gpu-architecture=sm_1"));
}

TEST(CudaLibrariesTest, AnOldOneIsToldByWhatItLacks) {
  const std::string file = "libm.so.6";
  const auto library = SharedLibrary::open({&file, 1}, {});
  ASSERT_TRUE(library.ok()) << library.error().message;
  EXPECT_EQ(load_cuda_driver(*library).error().message, "libm.so.6 has no function cuInit");
  EXPECT_EQ(load_nvrtc(*library).error().message, "libm.so.6 has no function nvrtcVersion");
  EXPECT_EQ(load_cublas(*library).error().message, "libm.so.6 has no function cublasCreate_v2");
  EXPECT_EQ(load_cublas_lt(*library).error().message, "libm.so.6 has no function cublasLtCreate");
}

TEST(CudaLibrariesTest, ThoseHereHaveEveryFunction) {
  const std::vector<std::string> folders = cuda_library_folders("");
  const auto nvrtc = open_nvrtc(folders);
  const auto cublas = open_cublas(folders);
  const auto cublas_lt = open_cublas_lt(folders);
  for (const Error* error :
       {nvrtc.ok() ? nullptr : &nvrtc.error(), cublas.ok() ? nullptr : &cublas.error(),
        cublas_lt.ok() ? nullptr : &cublas_lt.error()}) {
    if (error == nullptr) continue;
    ASSERT_EQ(error->code, ErrorCode::not_found) << error->message;
    GTEST_SKIP() << error->message;
  }
  int major = 0, minor = 0;
  EXPECT_EQ(nvrtc->nvrtcVersion(&major, &minor), NVRTC_SUCCESS);
  EXPECT_GE(major, 12);
}

}  // namespace
}  // namespace rnntune::cuda
