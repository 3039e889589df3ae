// SPDX-License-Identifier: Apache-2.0
// What is cuDNN's own, as far as no GPU is needed for it: where the library loads, it judges our
// descriptors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/cudnn/cudnn.hpp"
#include "reference/cudnn/network.hpp"
#include "reference/cudnn/values.hpp"
#include "tests/fake_cudnn.hpp"
#include "tests/host_gpu.hpp"

namespace rnntune::reference::cudnn {
namespace {

using fakes::FakeCudnn;
using fakes::HostGpu;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(CudnnOpponent, NeedsACudaDevice) {
  std::vector<std::string> absent;
  auto found = find_opponents("cudnn", {open_device("cpu").value(), ""}, absent);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->empty());
  EXPECT_THAT(absent, ElementsAre("runs on a cuda device, this one is cpu"));
}

TEST(CudnnLibrary, ALibraryWithoutItsFunctionsIsRefused) {
  const std::string file = "libm.so.6";
  const auto library = SharedLibrary::open({&file, 1}, {});
  ASSERT_TRUE(library.ok());
  EXPECT_EQ(load_cudnn(*library).error().message, "libm.so.6 has no function cudnnGetVersion");
}

TEST(CudnnLibrary, TheRealOneLoadsOrSaysWhyInALine) {
  const auto table = open_cudnn(cuda_library_folders(""));
  if (!table.ok()) {
    EXPECT_THAT(table.error().message, AllOf(HasSubstr("libcudnn.so.9"), Not(HasSubstr("\n"))));
    GTEST_SKIP() << table.error().message;
  }
  EXPECT_THAT(version_of(*table), StartsWith("9."));
}

TEST(CudnnLibrary, WithoutADriverTheRealOneIsNoOpponent) {
  const std::string driver = "libcuda.so.1";
  if (SharedLibrary::open({&driver, 1}, {}).ok()) GTEST_SKIP() << "there is a driver";
  std::vector<std::string> absent;
  EXPECT_THAT(find_cudnn({std::make_shared<HostGpu>(), ""}, absent), SizeIs(0));
  if (!open_cudnn(cuda_library_folders("")).ok()) GTEST_SKIP() << absent[0];
  EXPECT_THAT(absent, ElementsAre(AllOf(HasSubstr("9."),
                                        HasSubstr("cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED"),
                                        Not(HasSubstr("\n")))));
}

// Descriptors need no GPU; handles and what is sized or computed with one are the fake's.
TEST(CudnnLibrary, TheRealOneTakesOurDescriptors) {
  const auto real = open_cudnn(cuda_library_folders(""));
  if (!real.ok()) GTEST_SKIP() << real.error().message;
  FakeCudnn fake;
  Cudnn table = *real;
  const Cudnn other = fake.table();
  table.cudnnCreate = other.cudnnCreate;
  table.cudnnDestroy = other.cudnnDestroy;
  table.cudnnSetStream = other.cudnnSetStream;
  table.cudnnBuildRNNDynamic = [](cudnnHandle_t, cudnnRNNDescriptor_t, int) {
    return CUDNN_STATUS_SUCCESS;
  };
  table.cudnnGetRNNWeightSpaceSize = [](cudnnHandle_t, cudnnRNNDescriptor_t, std::size_t* bytes) {
    *bytes = 64;
    return CUDNN_STATUS_SUCCESS;
  };
  table.cudnnGetRNNTempSpaceSizes = [](cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t,
                                       cudnnRNNDataDescriptor_t, std::size_t* workspace,
                                       std::size_t* reserve) {
    *workspace = *reserve = 64;
    return CUDNN_STATUS_SUCCESS;
  };
  const auto session = Session::open(table, std::make_shared<HostGpu>());
  ASSERT_TRUE(session.ok());
  for (const char* cell : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    for (const char* extra : {"f32", "tf32", "f16", "bf16", "D2,bias1,f32", "nobias,f32"}) {
      const Problem p = parse_problem(std::string(cell) + ":L2,T4,B8,I32,H64," + extra).value();
      const std::vector<int> lengths(8, 4);
      for (const Algorithm& algorithm : algorithms()) {
        const auto network = Network::create(*session, p, lengths, algorithm);
        EXPECT_TRUE(network.ok()) << to_string(p) << " " << algorithm.name << ": "
                                  << network.error().message;
      }
    }
  }
  const Problem projected = parse_problem("lstm:L2,T4,B8,I32,H64,P16,f32").value();
  const auto network =
      Network::create(*session, projected, std::vector<int>(8, 4), algorithms()[0]);
  EXPECT_TRUE(network.ok()) << network.error().message;
  for (const Algorithm& algorithm : algorithms().subspan(2)) {
    EXPECT_FALSE(Network::create(*session, projected, std::vector<int>(8, 4), algorithm).ok())
        << algorithm.name << ": the real library judges, it does not just nod";
  }
}

TEST(CudnnValues, RoundToNearestAndBack) {
  const std::vector<float> values{0.0f, 1.0f, -2.5f, 1.0009765625f, 65504.0f, 1e-8f};
  EXPECT_EQ(decode(encode(values, Dtype::f32), Dtype::f32), values);
  EXPECT_THAT(decode(encode(values, Dtype::f16), Dtype::f16),
              ElementsAre(0.0f, 1.0f, -2.5f, 1.0009765625f, 65504.0f, 0.0f));
  EXPECT_THAT(decode(encode(values, Dtype::bf16), Dtype::bf16),
              ElementsAre(0.0f, 1.0f, -2.5f, 1.0f, 65536.0f, ::testing::FloatNear(1e-8f, 1e-10f)));
}

}  // namespace
}  // namespace rnntune::reference::cudnn
