// SPDX-License-Identifier: Apache-2.0
// What measures a GPU's building blocks: on a driver and a clock that are fakes, where every figure
// is known before; and its text by the real NVRTC.
#include "tuner/inspect/probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "cuda/compiler.hpp"
#include "cuda/probe_arguments.hpp"
#include "paths.hpp"
#include "tests/fake_cuda.hpp"
#include "tuner/inspect/probe_device.hpp"

namespace rnntune::tuner {
namespace {

using cuda::BarrierArguments;
using cuda::RemoteArguments;
using testing::Contains;
using testing::HasSubstr;

// A GPU on which an empty kernel takes 2 us (1.5 in a graph) and one of rounds 5 us, and for each
// round 1.25 us with a grid barrier, 0.25 with a cluster's, and 0.5 with remote memory.
struct Scene {
  double now_us = 0;
  double graph_us = 0;  // of the graph that was captured last
  bool capturing = false;
  unsigned wrong = 0;  // values that checking kernels see
  std::map<CUfunction, ProbeKernel> kernels;
  std::map<ProbeKernel, std::vector<FakeLaunch>> launches;
  std::vector<RemoteArguments> moves;
};
Scene scene;

CUresult run(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  const CUresult status = fake_driver().cuLaunchKernelEx(config, function, parameters, extra);
  if (status != CUDA_SUCCESS) return status;
  const ProbeKernel kernel = scene.kernels.at(function);
  scene.launches[kernel].push_back(fake_cuda().launches.back());
  double us = 0;
  if (kernel == kRemoteRead || kernel == kRemoteWrite) {
    RemoteArguments move;
    std::memcpy(&move, parameters[0], sizeof move);
    scene.moves.push_back(move);
    us = 5 + move.rounds * 0.5;
  } else if (kernel == kEmpty) {
    us = scene.capturing ? 1.5 : 2;
  } else {
    BarrierArguments barriers;
    std::memcpy(&barriers, parameters[0], sizeof barriers);
    if (kernel == kGridChecked || kernel == kClusterChecked) *barriers.errors += scene.wrong;
    us = 5 + barriers.rounds * (kernel < kClusterBarriers ? 1.25 : 0.25);
  }
  (scene.capturing ? scene.graph_us : scene.now_us) += us;
  return status;
}

CudaDriver driver_of_scene() {
  CudaDriver driver = fake_driver();
  driver.cuLaunchKernelEx = run;
  driver.cuStreamBeginCapture = [](CUstream stream, CUstreamCaptureMode mode) {
    scene.capturing = true;
    scene.graph_us = 0;
    return fake_driver().cuStreamBeginCapture(stream, mode);
  };
  driver.cuStreamEndCapture = [](CUstream stream, CUgraph* graph) {
    scene.capturing = false;
    return fake_driver().cuStreamEndCapture(stream, graph);
  };
  driver.cuGraphLaunch = [](CUgraphExec graph, CUstream stream) {
    scene.now_us += scene.graph_us;
    return fake_driver().cuGraphLaunch(graph, stream);
  };
  return driver;
}

class SceneClock final : public Clock {
 public:
  double now_us() override { return scene.now_us; }
  double cpu_us() override { return scene.now_us; }
};

class ProbeTest : public testing::Test {
 protected:
  void SetUp() override {
    reset_fake_cuda();
    scene = {};
    for (int i = 0; i < kProbeKernels; ++i) {
      const auto kernel = static_cast<ProbeKernel>(i);
      const std::string lowered = "lowered " + probe_kernel(kernel).expression;
      scene.kernels[reinterpret_cast<CUfunction>(std::hash<std::string>()(lowered))] = kernel;
    }
  }

  // Answers by "question: of", as text.
  std::map<std::string, std::string> ask(const std::string& filter, bool fine = true) {
    cuda::Libraries libraries = fake_libraries();
    libraries.driver = driver_of_scene();
    auto device = cuda::open_cuda(libraries, {}, all_probe_texts());
    EXPECT_TRUE(device.ok()) << device.error().message;
    Options options;
    options.filter = filter;
    std::map<std::string, std::string> answers;
    const bool passed =
        probe_gpu(options, *device, std::make_shared<SceneClock>(), [&](const Answer& answer) {
          char value[64];
          std::snprintf(value, sizeof value, "%.4g %s", answer.value, answer.unit.c_str());
          answers[answer.question + ": " + answer.of] =
              (answer.failed ? "FAILED " : "") + (answer.unit.empty() ? answer.text : value);
        });
    EXPECT_EQ(passed, fine);
    return answers;
  }
};

TEST_F(ProbeTest, BarriersAreCheckedAndTimedByTheRound) {
  const auto answers = ask("grid_barrier");
  EXPECT_EQ(answers.at("grid_barrier: 132 blocks of 256 threads"), "1.25 us");
  EXPECT_EQ(answers.at("grid_barrier: 66 blocks of 256 threads"), "1.25 us");
  ASSERT_EQ(scene.launches[kGridChecked].size(), 2u);
  for (const ProbeKernel kernel : {kGridChecked, kGridBarriers}) {
    for (const FakeLaunch& launch : scene.launches[kernel]) {
      EXPECT_TRUE(launch.cooperative);
      EXPECT_EQ(launch.block[0], 256u);
      EXPECT_THAT((std::vector{132u, 66u}), Contains(launch.grid[0]));
    }
  }
}

TEST_F(ProbeTest, ClustersOfEverySize) {
  const auto answers = ask("cluster_barrier|remote_memory");
  for (const char* size : {"2", "4", "8", "16"}) {
    EXPECT_EQ(answers.at(std::string("cluster_barrier: cluster of ") + size), "0.25 us");
    // 64 KiB in 0.5 us.
    for (const char* move : {"read of its own", "write to its own"}) {
      EXPECT_EQ(
          answers.at(std::string("remote_memory: ") + move + ", cluster of " + size + ", a block"),
          "131.1 GB/s");
    }
  }
  EXPECT_EQ(answers.count("remote_memory: read of the one 8 ranks on, cluster of 16, a block"), 1u);
  ASSERT_EQ(scene.launches[kClusterChecked].size(), 4u);
  EXPECT_EQ(scene.launches[kClusterChecked].back().cluster[0], 16u);
  EXPECT_EQ(scene.launches[kClusterChecked].back().grid[0], 16u);
  EXPECT_EQ(fake_cuda().of_functions.at(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED), 1);
  ASSERT_FALSE(scene.moves.empty());
  for (const RemoteArguments& move : scene.moves) {
    EXPECT_EQ(move.vectors * 16, 65536);
    EXPECT_LE(move.distance, 8);
  }
  EXPECT_EQ(scene.launches[kRemoteRead].front().shared_bytes, 65536u);
}

TEST_F(ProbeTest, CountsResidentClusters) {
  fake_cuda().clusters = 7;
  const auto answers = ask("resident");
  EXPECT_EQ(answers.at("resident_clusters: clusters of 16, 0 KiB of shared memory a block"),
            "7 resident at once, and launched");
  EXPECT_EQ(answers.count("resident_clusters: clusters of 2, 227 KiB of shared memory a block"), 1u)
      << testing::PrintToString(answers);
  fake_cuda().failures["cuOccupancyMaxActiveClusters"] = CUDA_ERROR_INVALID_CLUSTER_SIZE;
  EXPECT_THAT(
      ask("resident").at("resident_clusters: clusters of 16, 0 KiB of shared memory a block"),
      HasSubstr("none: cuOccupancyMaxActiveClusters"));
}

TEST_F(ProbeTest, LaunchesEagerAndInAGraph) {
  const auto answers = ask("launch_gap");
  EXPECT_EQ(answers.at("launch_gap: eager, launch to launch"), "2 us");
  EXPECT_EQ(answers.at("launch_gap: in a graph, launch to launch"), "1.5 us");
}

TEST_F(ProbeTest, ABarrierThatDoesNotHoldFails) {
  scene.wrong = 3;
  EXPECT_EQ(ask("cluster_barrier", false).at("cluster_barrier: cluster of 2"),
            "FAILED 3 wrong values were seen");
  EXPECT_EQ(ask("grid_barrier", false).at("grid_barrier: not answered"),
            "FAILED 3 wrong values were seen");
}

TEST_F(ProbeTest, AFailedLaunchIsToldAndTheOthersAreAsked) {
  fake_cuda().failures["cuLaunchKernelEx"] = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  const auto answers = ask("grid_barrier|launch_gap", false);
  EXPECT_THAT(answers.at("grid_barrier: not answered"), HasSubstr("cuLaunchKernelEx"));
  EXPECT_THAT(answers.at("launch_gap: not answered"), HasSubstr("cuLaunchKernelEx"));
}

TEST_F(ProbeTest, OlderSilicon) {
  fake_cuda().major = 8;
  const auto answers = ask("cluster");
  EXPECT_EQ(answers.at("cluster_barrier: clusters"), "compute capability 9.0 has them");
  EXPECT_TRUE(scene.launches.empty());
}

TEST(ProbeText, CompilesForEveryArchitecture) {
  auto nvrtc = open_nvrtc(cuda_library_folders(data_folder()));
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.error().message;
  const cuda::Compiler compiler(*nvrtc, all_probe_texts(), "");
  for (const std::string architecture : {"sm_80", "sm_90", "sm_120"}) {
    const int kernels = architecture == "sm_80" ? kClusterBarriers : kProbeKernels;
    for (int kernel = 0; kernel < kernels; ++kernel) {
      const auto binary =
          compiler.compile(probe_kernel(static_cast<ProbeKernel>(kernel)), architecture);
      ASSERT_TRUE(binary.ok()) << binary.error().message;
      EXPECT_EQ(binary->cubin.substr(1, 3), "ELF");
      EXPECT_EQ(binary->usage.spill_store_bytes, 0) << binary->lowered_name;
    }
  }
}

}  // namespace
}  // namespace rnntune::tuner
