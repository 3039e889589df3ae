// SPDX-License-Identifier: Apache-2.0
// Not verified on a GPU: every answer about one. Grid barriers, launches and the time step run on
// the emulator; the text for clusters is compiled only.
#include "tuner/inspect/probe.hpp"

#include <cstdio>

#include "cuda/probe_arguments.hpp"
#include "paths.hpp"
#include "reference/opponent.hpp"
#include "space.hpp"
#include "tuner/command.hpp"
#include "tuner/contenders/contender.hpp"
#include "tuner/gpu/gpu_clock.hpp"
#include "tuner/inspect/probe_device.hpp"

namespace rnntune::tuner {
namespace {

using cuda::BarrierArguments;
using cuda::kProbeThreads;
using cuda::RemoteArguments;

constexpr unsigned kClusterSizes[] = {2, 4, 8, 16};

// How much is run. The emulator walks through the same with little.
struct Scale {
  unsigned blocks;      // of a grid, 0: as many as there are multiprocessors
  int few, many;        // rounds or launches, of which the difference is timed
  int checked;          // rounds of a kernel that checks
  const char* problem;  // of the time step
};
constexpr Scale kOnGpu{.blocks = 0,
                       .few = 200,
                       .many = 1200,
                       .checked = 1000,
                       .problem = "lstm:L1,T64,B16,I768,H768,f32"};
constexpr Scale kEmulated{
    .blocks = 4, .few = 1, .many = 5, .checked = 3, .problem = "lstm:L1,T2,B2,I4,H4,f32"};

Error wrong(const std::string& what) { return {ErrorCode::internal, what}; }

std::string blocks_text(unsigned blocks) {
  return std::to_string(blocks) + " blocks of " + std::to_string(kProbeThreads) + " threads";
}

class GpuProbe {
 public:
  GpuProbe(const Options& options, std::shared_ptr<Device> device, std::shared_ptr<Clock> clock,
           const std::function<void(const Answer&)>& tell)
      : options_(options),
        tell_(tell),
        device_(std::move(device)),
        clock_(std::move(clock)),
        emulated_(device_->info().backend == "simt"),
        scale_(emulated_ ? kEmulated : kOnGpu),
        words_(value_or_throw(device_->allocate(3 * sizeof(unsigned)))) {}
  ~GpuProbe() { device_->release(words_); }
  GpuProbe(const GpuProbe&) = delete;

  bool run();

 private:
  gpu::GpuDevice& gpu() const { return gpu::gpu(*device_); }
  bool has_clusters() const { return !emulated_ && gpu().limits().compute_capability >= 90; }
  unsigned blocks() const {
    return scale_.blocks > 0 ? scale_.blocks
                             : static_cast<unsigned>(gpu().limits().multiprocessors);
  }

  // Each a question: what it finds is told; an error is its failure.
  Status grid_barrier();
  Status cluster_barrier();
  Status remote_memory();
  Status resident_clusters();
  Status launch_gap();
  Status time_step();
  Status cudnn();

  void value(const std::string& of, double value, const char* unit) {
    tell_({question_, of, value, unit});
  }
  void text(const std::string& of, const std::string& text) { tell_({question_, of, 0, "", text}); }
  void fail(const std::string& of, const Error& error) {
    failed_ = true;
    tell_({question_, of, 0, "", error.message, true});
  }

  Result<std::shared_ptr<const gpu::Kernel>> kernel(ProbeKernel which) {
    const gpu::KernelId id = probe_kernel(which);
    auto built = gpu().build({&id, 1});
    if (!built.ok()) return built.error();
    return built->front();
  }
  // Words of the device from zero: state, count, errors.
  BarrierArguments barriers(int rounds) const {
    auto* const word = static_cast<unsigned*>(words_);
    return {word, word + 1, word + 2, rounds};
  }
  Status clear() { return device_->fill(words_, 0, 3 * sizeof(unsigned)); }
  Status expect_no_errors() {
    unsigned counts[3] = {};
    const Status status = device_->to_host(counts, words_, sizeof counts);
    if (!status.ok() || counts[2] == 0) return status;
    return wrong(std::to_string(counts[2]) + " wrong values were seen");
  }
  template <class Arguments>
  Status launch(const gpu::Kernel& kernel, const gpu::LaunchShape& shape,
                const Arguments& arguments) {
    return gpu().launch(kernel, shape, &arguments, sizeof arguments, nullptr);
  }
  Result<double> time_us(const Step& step);
  // What one more round costs: of launches with few and with many.
  Result<double> round_us(const std::function<Status(int rounds)>& launch);
  Status check_and_time(const std::string& of, ProbeKernel checked, ProbeKernel timed,
                        const gpu::LaunchShape& shape);
  Status remote_rate(ProbeKernel which, unsigned size, int distance);
  Status cudnn_serves(reference::Opponent& opponent, const Problem& problem);

  const Options& options_;
  const std::function<void(const Answer&)>& tell_;
  const std::shared_ptr<Device> device_;
  const std::shared_ptr<Clock> clock_;
  const bool emulated_;
  const Scale& scale_;
  void* const words_;
  std::string question_;
  bool failed_ = false;
};

Result<double> GpuProbe::time_us(const Step& step) {
  const Step whole = [&]() -> Status {
    Status status = step();
    if (!status.ok() || clock_->completes_steps()) return status;
    return device_->synchronize();
  };
  MeasurePolicy policy;
  policy.max_samples = 50;
  policy.budget_us = 5e5;
  policy.warmup_us = 1e3;
  const Result<Timing> timing = measure(whole, policy, *clock_);
  if (!timing.ok()) return timing.error();
  return timing->summary.median;
}

Result<double> GpuProbe::round_us(const std::function<Status(int)>& launch) {
  const Result<double> first = time_us([&] { return launch(scale_.few); });
  if (!first.ok()) return first.error();
  const Result<double> last = time_us([&] { return launch(scale_.many); });
  if (!last.ok()) return last.error();
  const double each = (*last - *first) / (scale_.many - scale_.few);
  if (each > 0 || emulated_) return each;
  return wrong("more rounds took no longer: the rounds were not run, or the timer is wrong");
}

Status GpuProbe::check_and_time(const std::string& of, ProbeKernel checked, ProbeKernel timed,
                                const gpu::LaunchShape& shape) {
  const auto check = kernel(checked), run = kernel(timed);
  if (!check.ok()) return check.error();
  if (!run.ok()) return run.error();
  Status status = clear();
  if (status.ok()) status = launch(**check, shape, barriers(scale_.checked));
  if (status.ok()) status = expect_no_errors();
  if (!status.ok()) return status;
  const Result<double> each =
      round_us([&](int rounds) { return launch(**run, shape, barriers(rounds)); });
  if (!each.ok()) return each.error();
  value(of, *each, "us");
  return {};
}

Status GpuProbe::grid_barrier() {
  for (const unsigned grid : {blocks(), blocks() / 2}) {
    const gpu::LaunchShape shape{.grid = {grid}, .block = {kProbeThreads}, .cooperative = true};
    const Status status = check_and_time(blocks_text(grid), kGridChecked, kGridBarriers, shape);
    if (!status.ok()) return status;
  }
  return {};
}

Status GpuProbe::cluster_barrier() {
  for (const unsigned size : kClusterSizes) {
    const gpu::LaunchShape shape{.grid = {size}, .block = {kProbeThreads}, .cluster = {size}};
    const std::string of = "cluster of " + std::to_string(size);
    const Status status = check_and_time(of, kClusterChecked, kClusterBarriers, shape);
    if (!status.ok()) fail(of, status.error());
  }
  return {};
}

// Of one block, when every block of one cluster does the same.
Status GpuProbe::remote_rate(ProbeKernel which, unsigned size, int distance) {
  constexpr int kVectors = 4096, kVectorBytes = 16;  // 64 KiB
  const auto move = kernel(which);
  if (!move.ok()) return move.error();
  const gpu::LaunchShape shape{.grid = {size},
                               .block = {kProbeThreads},
                               .shared_bytes = kVectors * kVectorBytes,
                               .cluster = {size}};
  Status status = clear();
  if (!status.ok()) return status;
  const Result<double> each = round_us([&](int rounds) {
    return launch(**move, shape, RemoteArguments{barriers(0).errors, rounds, kVectors, distance});
  });
  if (!each.ok()) return each.error();
  if (status = expect_no_errors(); !status.ok()) return status;
  const std::string where =
      distance == 0 ? "its own" : "the one " + std::to_string(distance) + " ranks on";
  value(std::string(which == kRemoteRead ? "read of " : "write to ") + where + ", cluster of " +
            std::to_string(size) + ", a block",
        kVectors * kVectorBytes / *each * 1e-3, "GB/s");
  return {};
}

Status GpuProbe::remote_memory() {
  for (const ProbeKernel which : {kRemoteRead, kRemoteWrite}) {
    for (const unsigned size : kClusterSizes) {
      for (const int distance : {0, 1, static_cast<int>(size / 2)}) {
        if (distance == 1 && size == 2) continue;
        const Status status = remote_rate(which, size, distance);
        if (!status.ok()) fail("cluster of " + std::to_string(size), status.error());
      }
    }
  }
  return {};
}

Status GpuProbe::resident_clusters() {
  const auto plain = kernel(kClusterBarriers);
  if (!plain.ok()) return plain.error();
  // As much as a kernel may that keeps weights in shared memory: a block for each multiprocessor.
  const auto most = static_cast<unsigned>(gpu().limits().shared_bytes_per_block);
  for (const unsigned size : kClusterSizes) {
    for (const unsigned shared : {0u, most}) {
      const std::string of = "clusters of " + std::to_string(size) + ", " +
                             std::to_string(shared / 1024) + " KiB of shared memory a block";
      gpu::LaunchShape shape{
          .grid = {size}, .block = {kProbeThreads}, .shared_bytes = shared, .cluster = {size}};
      const Result<int> resident = gpu().resident_clusters(**plain, shape);
      if (!resident.ok()) {
        text(of, "none: " + resident.error().message);
        continue;
      }
      Status status = launch(**plain, shape, barriers(1));
      if (status.ok()) status = device_->synchronize();
      if (status.ok()) value(of, *resident, "resident at once, and launched");
      if (!status.ok()) text(of, "does not launch: " + status.error().message);
    }
  }
  return {};
}

Status GpuProbe::launch_gap() {
  const auto empty = kernel(kEmpty);
  if (!empty.ok()) return empty.error();
  const int few = scale_.few, many = scale_.many;
  const auto queue = [&](int launches, Stream stream) -> Status {
    const gpu::LaunchShape shape{.grid = {blocks()}, .block = {kProbeThreads}};
    const BarrierArguments none = barriers(0);
    for (int i = 0; i < launches; ++i) {
      Status status = gpu().launch(**empty, shape, &none, sizeof none, stream);
      if (!status.ok()) return status;
    }
    return {};
  };
  double us[2] = {};
  for (const int launches : {few, many}) {
    const Result<double> time = time_us([&] { return queue(launches, nullptr); });
    if (!time.ok()) return time.error();
    us[launches == many] = *time;
  }
  value("eager, launch to launch", (us[1] - us[0]) / (many - few), "us");
  for (const int launches : {few, many}) {
    const Result<Stream> stream = gpu().create_stream();
    if (!stream.ok()) return stream.error();
    Status status = gpu().begin_capture(*stream);
    if (status.ok()) status = queue(launches, *stream);
    const Result<gpu::Graph> graph = gpu().end_capture(*stream);
    gpu().destroy_stream(*stream);
    if (!status.ok()) return status;
    if (!graph.ok()) return graph.error();
    const Result<double> time = time_us([&] { return gpu().launch(*graph, nullptr); });
    gpu().destroy_graph(*graph);
    if (!time.ok()) return time.error();
    us[launches == many] = *time;
  }
  value("in a graph, launch to launch", (us[1] - us[0]) / (many - few), "us");
  return {};
}

Status GpuProbe::time_step() {
  const Problem problem = *parse_problem(scale_.problem);
  const Setting setting{device_, make_case(problem, options_.seed), clock_};
  const Space space(problem, device_->info());
  for (const Space::Branch& branch : space.branches()) {
    const std::string of = to_string(problem) + ", " + branch.variant->name + " as built in";
    if (!branch.why_not.empty()) {
      text(of, branch.why_not);
      continue;
    }
    Record record;
    const auto contender =
        prepare(setting, branch.variant->built_in(problem, device_->info()), record);
    if (!contender) {
      fail(of, wrong(record.reason));
      continue;
    }
    const Result<double> time = time_us(contender->step);
    if (!time.ok()) return time.error();
    value(of, *time / static_cast<double>(problem.time), "us a time step, forward and backward");
  }
  return {};
}

Status GpuProbe::cudnn_serves(reference::Opponent& opponent, const Problem& problem) {
  const auto which = make_case(problem, options_.seed);
  const auto run = opponent.prepare(problem, which->inputs, which->expected, options_.threads);
  if (!run.ok()) {
    text(to_string(problem), run.error().message);
    return {};
  }
  for (const std::string& note : (*run)->notes()) text(to_string(problem), note);
  return {};
}

Status GpuProbe::cudnn() {
  std::vector<std::string> absent;
  const auto found = reference::find_opponents("cudnn", {device_, data_folder()}, absent);
  if (!found.ok()) return found.error();
  for (const std::string& reason : absent) text("cudnn", reason);
  for (const auto& opponent : *found) {
    // What a persistent kernel meets first; then sizes on both sides of what fits on the chip.
    for (const int hidden : {768, 128, 256, 512, 640, 1024, 1536}) {
      for (const char* dtype : {"f16", "bf16", "f32", "tf32"}) {
        const std::string size = std::to_string(hidden);
        const Problem problem =
            *parse_problem("lstm:L1,T32,B16,I" + size + ",H" + size + "," + dtype);
        const Status status = cudnn_serves(*opponent, problem);
        if (!status.ok()) return status;
      }
    }
  }
  return {};
}

bool GpuProbe::run() {
  struct Row {
    const char* name;
    bool clusters;
    Status (GpuProbe::*ask)();
  };
  static constexpr Row rows[] = {
      {"grid_barrier", false, &GpuProbe::grid_barrier},
      {"cluster_barrier", true, &GpuProbe::cluster_barrier},
      {"remote_memory", true, &GpuProbe::remote_memory},
      {"resident_clusters", true, &GpuProbe::resident_clusters},
      {"launch_gap", false, &GpuProbe::launch_gap},
      {"time_step", false, &GpuProbe::time_step},
      {"cudnn", false, &GpuProbe::cudnn},
  };
  const auto matches = finder(options_.filter);
  bool asked = false;
  for (const Row& row : rows) {
    if (!matches(row.name)) continue;
    asked = true;
    question_ = row.name;
    if (row.clusters && !has_clusters()) {
      text("clusters", emulated_ ? "the emulator has none" : "compute capability 9.0 has them");
      continue;
    }
    const Status status = (this->*row.ask)();
    if (!status.ok()) fail("not answered", status.error());
  }
  if (!asked) throw BadInput("--filter: no question matches '" + options_.filter + "'");
  question_ = "timer";
  if (!clock_->source().empty()) text("times", clock_->source());
  return !failed_;
}

}  // namespace

bool probe_gpu(const Options& options, const std::function<void(const Answer&)>& tell) {
  const std::shared_ptr<Device> device = open_probe_device(options);
  return probe_gpu(options, device, value_or_throw(open_clock(device)), tell);
}

bool probe_gpu(const Options& options, const std::shared_ptr<Device>& device,
               const std::shared_ptr<Clock>& clock,
               const std::function<void(const Answer&)>& tell) {
  return GpuProbe(options, device, clock, tell).run();
}

}  // namespace rnntune::tuner
