// SPDX-License-Identifier: Apache-2.0
// Where libraries that are opened at run time are found, and what is said of those that are not.
#include "kernels/device/shared_library.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rnntune {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class SharedLibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"CUDA_HOME", "CUDA_PATH", "RNNTUNE_CUDA_WHEELS", "VIRTUAL_ENV"}) {
      ::unsetenv(name);
    }
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string make(const std::string& folder) const {
    fs::create_directories(root_ / folder);
    return (root_ / folder).string();
  }
  // A library that this process has for certain, under another name.
  static void copy_library(const std::string& to) {
    Dl_info info{};
    ASSERT_NE(
        dladdr(reinterpret_cast<const void*>(static_cast<double (*)(double)>(&std::cbrt)), &info),
        0);
    fs::copy_file(info.dli_fname, to);
  }

  const fs::path root_ = fs::path(testing::TempDir()) /
                         ("libraries-" + std::to_string(getpid()) + "-" +
                          testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(SharedLibraryTest, FoldersInTheOrderOfTrying) {
  const std::string home = make("home/lib64"), path = make("path/lib");
  const std::string wheels_a = make("wheels/nvidia/cu13/lib");
  const std::string wheels_b = make("wheels/nvidia/cudnn/lib");
  const std::string environment = make("venv/lib/python3.11/site-packages/nvidia/cublas/lib");
  const std::string data = make("data/nvidia/cuda_nvrtc/lib");
  make("wheels/nvidia/without");
  make("venv/lib/other/site-packages/nvidia/cublas/lib");
  ::setenv("CUDA_HOME", (root_ / "home").c_str(), 1);
  ::setenv("CUDA_PATH", (root_ / "path").c_str(), 1);
  ::setenv("RNNTUNE_CUDA_WHEELS", (root_ / "wheels").c_str(), 1);
  ::setenv("VIRTUAL_ENV", (root_ / "venv").c_str(), 1);
  std::vector<std::string> folders = cuda_library_folders((root_ / "data").string());
  std::erase_if(folders, [&](const auto& f) { return !f.starts_with(root_.string()); });
  EXPECT_THAT(folders, ElementsAre(home, path, wheels_a, wheels_b, environment, data));
  EXPECT_THAT(cuda_library_folders(""), Not(Contains(data)));
}

TEST_F(SharedLibraryTest, OpensFromAFolder) {
  const std::string folder = make("folder");
  const std::string file = "librnntune_found.so.2";
  const std::string files[] = {"librnntune_found.so.3", file};
  const std::string folders[] = {make("empty"), folder};
  copy_library(folder + "/" + file);
  const auto library = SharedLibrary::open(files, folders);
  ASSERT_TRUE(library.ok()) << library.error().message;
  EXPECT_EQ(library->path(), folder + "/" + file);
  EXPECT_NE(library->symbol("cbrt"), nullptr);
  EXPECT_EQ(library->symbol("cuInit"), nullptr);
}

TEST_F(SharedLibraryTest, NamesTheFirstMissingFunction) {
  const std::string folder = make("folder");
  const std::string file = "librnntune_old.so.1";
  copy_library(folder + "/" + file);
  const auto library = SharedLibrary::open({&file, 1}, {&folder, 1});
  ASSERT_TRUE(library.ok()) << library.error().message;
  double (*there)(double) = nullptr;
  void (*gone)() = nullptr;
  std::string missing;
  load_symbol(*library, "cbrt", there, missing);
  EXPECT_TRUE(all_loaded(*library, missing).ok());
  load_symbol(*library, "first_gone", gone, missing);
  load_symbol(*library, "second_gone", gone, missing);
  const Status status = all_loaded(*library, missing);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::unsupported);
  EXPECT_EQ(status.error().message, folder + "/" + file + " has no function first_gone");
}

TEST_F(SharedLibraryTest, AbsenceSaysWhereItLooked) {
  const std::string files[] = {"librnntune_none.so.2", "librnntune_none.so.1"};
  const std::string folder = make("folder");
  const auto library = SharedLibrary::open(files, {&folder, 1});
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().code, ErrorCode::not_found);
  EXPECT_EQ(
      library.error().message,
      "no librnntune_none.so.2 or librnntune_none.so.1 (tried the loader's path, " + folder + ")");
}

TEST_F(SharedLibraryTest, AFileThatDoesNotLoadSaysWhy) {
  const std::string file = "librnntune_broken.so.1";
  const std::string folder = make("folder");
  std::ofstream(folder + "/" + file) << "no library at all";
  const auto library = SharedLibrary::open({&file, 1}, {&folder, 1});
  ASSERT_FALSE(library.ok());
  EXPECT_THAT(library.error().message,
              AllOf(StartsWith("no " + file), HasSubstr(folder + "/" + file + ": ")));
  EXPECT_EQ(library.error().message.find('\n'), std::string::npos) << "one line";
}

}  // namespace
}  // namespace rnntune
