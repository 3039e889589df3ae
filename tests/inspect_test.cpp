// SPDX-License-Identifier: Apache-2.0
// An inspection against the emulated device that really runs the step, and as text and JSON.
#include "tuner/inspect/inspect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <tuple>

#include "cuda/usage.hpp"
#include "simt/device.hpp"
#include "tuner/inspect/gpus.hpp"
#include "tuner/inspect/inspect_view.hpp"

namespace rnntune::tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kEager =
    "pointwise:forward=tbh,data=tbh,weights=tbh,chunk=0,reserve=gates,schedule=layers,"
    "launch=eager,bias_gradient=column_sum,threads=128,vector=1,step_gemm=0,gemm=0";
const std::string kGraph =
    "pointwise:forward=thb,data=tbh,weights=thb,chunk=1,reserve=recompute,schedule=wavefront,"
    "launch=graph,bias_gradient=column_sum,threads=256,vector=1,step_gemm=0,gemm=0";
const std::string kVector =
    "pointwise:forward=tbh,data=thb,weights=tbh,chunk=0,reserve=preactivations,schedule=layers,"
    "launch=eager,bias_gradient=atomic,threads=512,vector=4,step_gemm=0,gemm=0";

Explanation given(const std::string& config) {
  Explanation choice;
  choice.rung = Rung::given;
  choice.config = *parse_config(config);
  return choice;
}

InspectedGpu record(const char* name) {
  const GpuRecord& gpu = *find_gpu(name);
  return {info_of(gpu), limits_of(gpu)};
}

Inspection inspected(const std::string& problem, const std::string& config,
                     const char* gpu = "h100") {
  const Result<Inspection> found = inspect(*parse_problem(problem), given(config), record(gpu), 2);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
  return found.ok() ? *found : Inspection{};
}

bool counts_accesses(const Inspection& found) {
  return found.recording.kernels.at(0).uncounted.empty();
}

using Line = std::tuple<std::string, std::string, simt::Access, bool>;
using Counts = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;

void add(std::map<Line, Counts>& counts, const std::string& kernel, const simt::MemoryLine& line) {
  auto& [requests, bytes, transactions, ideal] =
      counts[{kernel, line.line, line.access, line.shared}];
  requests += line.requests;
  bytes += line.bytes;
  transactions += line.transactions;
  ideal += line.ideal;
}

class AgainstTheEmulator : public testing::TestWithParam<std::pair<std::string, std::string>> {};

// What was noted is what runs: launches, and every source line's sectors and wavefronts.
TEST_P(AgainstTheEmulator, CountsTheSame) {
  const auto& [problem, config] = GetParam();
  const Inspection found = inspected(problem, config);
  const auto profile = std::make_shared<simt::Profile>();
  const auto device = simt::open_simt({.seed = 3, .checked = true, .profile = profile});
  if (!device.ok()) GTEST_SKIP() << device.error().message;
  if (!counts_accesses(found)) GTEST_SKIP() << found.recording.kernels[0].uncounted;
  Result<Rnn> rnn = make_rnn(found.plan.problem, found.plan.choice, *device);
  ASSERT_TRUE(rnn.ok()) << rnn.error().message;
  EXPECT_EQ(found.plan.sizes.packed, rnn->packed_bytes());
  EXPECT_EQ(found.plan.sizes.reserve, rnn->reserve_bytes());
  const Status status = run_step(*rnn, **device);
  ASSERT_TRUE(status.ok()) << status.error().message;

  std::map<std::string, std::uint64_t> launches;
  std::map<Line, Counts> noted, ran;
  for (const simt::RecordedKernel& kernel : found.recording.kernels) {
    EXPECT_EQ(kernel.counted_share, 1) << "the problem is to be small";
    launches[kernel.kernel.expression] += kernel.launches;
    for (const auto& line : kernel.lines) add(noted, kernel.kernel.expression, line);
  }
  for (const simt::MemoryLine& line : profile->lines()) add(ran, line.kernel, line);
  EXPECT_EQ(launches, profile->launches());
  EXPECT_EQ(noted, ran);
}

INSTANTIATE_TEST_SUITE_P(Configs, AgainstTheEmulator,
                         testing::Values(std::pair{"lstm:L2,T5,B3,I7,H9,f32", kEager},
                                         std::pair{"lstm:L3,T4,B5,I4,H12,f32", kVector},
                                         std::pair{"lstm:L2,T6,B33,I5,H34,f32", kGraph},
                                         std::pair{"lstm:T3,B2,I4,H5,bias1,f32",
                                                   std::string("unfused:products=gate")}));

TEST(InspectTest, ProductsAreTheProblems) {
  const Inspection found = inspected("lstm:L2,T35,B20,I650,H650", kEager);
  double flops = 0;
  for (const auto& product : found.recording.products) {
    flops += product.flops() * double(product.count);
  }
  EXPECT_DOUBLE_EQ(flops, step_flops(found.plan.problem));
  EXPECT_EQ(found.recording.graphs, 0u);
}

TEST(InspectTest, AGraphTakesOneCall) {
  const Inspection eager = inspected("lstm:L2,T6,B3,I5,H34", kEager);
  const Inspection graph = inspected("lstm:L2,T6,B3,I5,H34", kGraph);
  EXPECT_EQ(eager.recording.graphs, 0u);
  EXPECT_EQ(graph.recording.graphs, 3u) << "forward, backward data, backward weights";
  EXPECT_LT(graph.recording.calls, eager.recording.calls);
}

// A sequence so long that it must not be run, on memory that is not there.
TEST(InspectTest, LongSequences) {
  const Inspection found = inspected("lstm:T65537,B64,I512,H512", kEager);
  std::uint64_t launches = 0;
  for (const auto& kernel : found.recording.kernels) launches += kernel.launches;
  EXPECT_GT(launches, 2u * 65537);
  EXPECT_GT(found.plan.sizes.reserve, std::size_t{20} << 30);
  if (!counts_accesses(found)) return;
  EXPECT_THAT(found.recording.kernels.back().uncounted, HasSubstr("too many to emulate"))
      << "a block of the column sums goes through all time steps";
  EXPECT_THAT(to_text(found, "gpu"), HasSubstr("  k4: not counted: a block makes"));
}

TEST(InspectTest, LargeLaunches) {
  const Inspection found = inspected("lstm:T2,B1024,I64,H2048", kEager);
  if (!counts_accesses(found)) GTEST_SKIP() << found.recording.kernels[0].uncounted;
  EXPECT_LT(found.recording.kernels.at(1).counted_share, 1);
  EXPECT_THAT(to_text(found, "gpu"), HasSubstr("of the blocks of a launch ran"));
}

TEST(InspectTest, ReasonsOfPlansAreToldOn) {
  const Result<Inspection> found =
      inspect(*parse_problem("gru:T3,B2,I4,H5"), given(kEager), record("a100"), 1);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message, HasSubstr("not gru"));
}

TEST(GpusTest, RecordsAreWhole) {
  std::set<std::string> names;
  for (const GpuRecord& gpu : gpu_records()) {
    SCOPED_TRACE(gpu.name);
    EXPECT_TRUE(names.insert(gpu.name).second);
    ASSERT_NE(cuda::limits_of(gpu.architecture), nullptr);
    EXPECT_EQ(limits_of(gpu).multiprocessors, gpu.multiprocessors);
    EXPECT_GT(gpu.multiprocessors, 0);
    EXPECT_GT(gpu.memory_gb, 0);
    EXPECT_FALSE(std::string(gpu.source).empty());
    EXPECT_EQ(find_gpu(gpu.name), &gpu);
    EXPECT_EQ(info_of(gpu).backend, "cuda");
  }
  EXPECT_EQ(find_gpu("h1000"), nullptr);
  EXPECT_EQ(find_gpu(""), nullptr);
}

TEST(InspectViewTest, TextHasSectionsInAlignedColumns) {
  const std::string text = to_text(inspected("lstm:L2,T5,B3,I7,H9", kEager), "h100: a GPU");
  for (const char* part : {"lstm:L2,T5,B3,I7,H9,f32\n", "h100: a GPU", "\nMemory of the plan",
                           "\nOne training step", "\nKernel launches", "\nKernel resources",
                           "\nProducts", "\nMemory accesses of the kernels"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  std::istringstream lines(text);
  std::size_t at = std::string::npos;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line.find_last_not_of(' ') + 1, line.size()) << "'" << line << "'";
    if (!line.starts_with("  config")) {
      EXPECT_LE(line.size(), 100u) << line;
    }
    if (line.find("  kernel  ") != std::string::npos) at = line.find("launches") + 8;
    if (line.starts_with("  k1  apply") && at != std::string::npos) {
      EXPECT_EQ(line.at(at - 1), '2') << "two layers' biases: " << line;
      EXPECT_EQ(line.at(at), ' ');
    }
  }
  EXPECT_NE(at, std::string::npos);
}

TEST(InspectViewTest, ResourcesOrWhyNot) {
  Inspection found = inspected("lstm:T5,B3,I7,H9", kEager);
  found.compiled.clear();
  found.not_compiled = "built without\nCUDA";
  EXPECT_THAT(to_text(found, ""), HasSubstr("  unknown: built without CUDA\n"));
  EXPECT_EQ(to_json(found)["not_compiled"], found.not_compiled);
  EXPECT_FALSE(to_json(found)["kernels"][0].contains("resources"));

  found.not_compiled.clear();
  for (const auto& kernel : found.recording.kernels) {
    found.compiled.push_back({.kernel = kernel.kernel, .architecture = "sm_90"});
    found.compiled.back().usage.registers = 77;
    found.compiled.back().resident_blocks = 5;
    found.compiled.back().resident_share = 0.375;
    found.compiled.back().resident_limit = "registers";
  }
  found.compiled[1].error = "no\nway";
  const std::string text = to_text(found, "");
  EXPECT_THAT(text, HasSubstr("did not compile: k2: no way\n"));
  EXPECT_THAT(text, HasSubstr("37.5%"));
  EXPECT_THAT(text, HasSubstr("compiled for sm_90"));
  const Json json = to_json(found);
  EXPECT_EQ(json["kernels"][0]["resources"]["registers"], 77);
  EXPECT_EQ(json["kernels"][0]["resources"]["occupancy"], 0.375);
  EXPECT_EQ(json["kernels"][1]["resources"]["error"], "no\nway");
}

TEST(InspectViewTest, Json) {
  const Inspection found = inspected("lstm:L2,T5,B3,I7,H9", kGraph);
  const Json json = to_json(found);
  EXPECT_EQ(json["problem"], "lstm:L2,T5,B3,I7,H9,f32");
  EXPECT_EQ(json["config"]["variant"], "pointwise");
  EXPECT_EQ(json["rung"], "given");
  EXPECT_EQ(json["graph_launches"], 3);
  EXPECT_EQ(json["reserve_bytes"], found.plan.sizes.reserve);
  EXPECT_EQ(json["products_workspace_included"], false);
  EXPECT_EQ(json["products"].size(), found.recording.products.size());
  ASSERT_EQ(json["kernels"].size(), found.recording.kernels.size());
  const Json& kernel = json["kernels"][0];
  EXPECT_EQ(kernel["launches"], found.recording.kernels[0].launches);
  EXPECT_EQ(kernel["largest_grid"].size(), 3u);
  if (!counts_accesses(found)) {
    EXPECT_FALSE(kernel.contains("lines"));
    EXPECT_TRUE(kernel.contains("not_counted"));
    return;
  }
  ASSERT_FALSE(kernel["lines"].empty());
  EXPECT_TRUE(kernel["lines"][0].contains("sectors"));
  EXPECT_EQ(kernel["lines"][0]["memory"], "global");
}

}  // namespace
}  // namespace rnntune::tuner
