// SPDX-License-Identifier: Apache-2.0
#include "simt/recorder.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "device/blas.hpp"
#include "device/geometry.hpp"
#include "device/prepared_gemm.hpp"
#include "simt/reservations.hpp"
#include "simt/sample.hpp"

namespace rnntune::simt {
namespace {

constexpr std::uintptr_t kSector = 32;

std::uint64_t blocks_of(const gpu::Extent3& grid) {
  return std::uint64_t{grid.x} * grid.y * grid.z;
}

class NotedKernel final : public gpu::Kernel {
 public:
  explicit NotedKernel(const KernelEntry& entry)
      : entry(entry), id_{entry.file, entry.expression} {}
  const gpu::KernelId& id() const override { return id_; }
  const gpu::KernelResources& resources() const override { return resources_; }

  const KernelEntry entry;

 private:
  const gpu::KernelId id_;
  const gpu::KernelResources resources_;
};

class NotedGemm final : public gpu::PreparedGemm {
 public:
  explicit NotedGemm(const Gemm& shape) : shape(shape) {}
  std::size_t workspace_bytes() const override { return 0; }

  const Gemm shape;
};

// How often what was queued: launches by kind, products by shape.
struct Tally {
  std::map<std::size_t, std::uint64_t> launches, products;
  Moved copies, fills;
  std::uint64_t calls = 0;

  void add(const Tally& other) {
    for (const auto& [kind, count] : other.launches) launches[kind] += count;
    for (const auto& [shape, count] : other.products) products[shape] += count;
    copies = {copies.count + other.copies.count, copies.bytes + other.copies.bytes};
    fills = {fills.count + other.fills.count, fills.bytes + other.fills.bytes};
  }
};

class RecordingDevice final : public Recorder {
 public:
  RecordingDevice(const RecorderOptions& options, std::vector<KernelEntry> kernels, bool watched)
      : options_(options), kernels_(std::move(kernels)), watched_(watched) {}

  Recording recording() const override;
  const DeviceInfo& info() const override { return options_.info; }
  const gpu::Limits& limits() const override { return options_.limits; }

  Result<void*> allocate(std::size_t bytes) override { return memory_.reserve(bytes); }
  void release(void* memory) override { memory_.release(reinterpret_cast<std::uintptr_t>(memory)); }
  Status to_device(void*, const void*, std::size_t, Stream) override { return no_values(); }
  Status to_host(void*, const void*, std::size_t, Stream) override { return no_values(); }
  Status fill(void* device, unsigned char, std::size_t bytes, Stream) override {
    return move(tally().fills, {device}, bytes);
  }
  Status copy(void* to, const void* from, std::size_t bytes, Stream) override {
    return move(tally().copies, {to, from}, bytes);
  }
  Status synchronize(Stream) override { return {}; }

  Result<std::vector<std::shared_ptr<const gpu::Kernel>>> build(
      std::span<const gpu::KernelId> kernels) override;
  Status launch(const gpu::Kernel& kernel, const gpu::LaunchShape& shape, const void* arguments,
                std::size_t bytes, Stream stream) override;

  Status gemm(const Gemm& gemm, Stream stream) override {
    return run(NotedGemm(gemm), gemm, nullptr, stream);
  }
  int gemm_choices() const override { return std::numeric_limits<int>::max(); }
  Result<std::shared_ptr<const gpu::PreparedGemm>> prepare(const Gemm& shape, int) override {
    if (Status status = check_gemm(shape); !status.ok()) return status.error();
    return std::shared_ptr<const gpu::PreparedGemm>(std::make_shared<NotedGemm>(shape));
  }
  Status run(const gpu::PreparedGemm& prepared, const Gemm& gemm, void* workspace,
             Stream stream) override;

  Result<Stream> create_stream() override { return handle(); }
  void destroy_stream(Stream) override {}
  Result<gpu::Event> create_event() override { return handle(); }
  void destroy_event(gpu::Event) override {}
  Status record(gpu::Event, Stream) override { return {}; }
  Status wait(Stream, gpu::Event) override { return {}; }
  Result<double> elapsed_us(gpu::Event, gpu::Event) override {
    return unsupported("a recorded step takes no time");
  }

  // What is queued anywhere meanwhile is of the graph: plans queue from one thread.
  Status begin_capture(Stream) override {
    if (capture_) return invalid_argument("capture: it was begun twice");
    capture_.emplace();
    return {};
  }
  Result<gpu::Graph> end_capture(Stream) override {
    if (!capture_) return invalid_argument("capture: none was begun");
    const gpu::Graph graph = handle();
    graphs_[graph] = std::move(*capture_);
    capture_.reset();
    return graph;
  }
  Status launch(gpu::Graph graph, Stream) override {
    total_.add(graphs_.at(graph));
    ++total_.calls;
    ++graph_launches_;
    return {};
  }
  void destroy_graph(gpu::Graph graph) override { graphs_.erase(graph); }

  std::string why_not_memory(const void* memory, std::size_t bytes) const override {
    const bool fine = bytes == 0 || memory_.hold(reinterpret_cast<std::uintptr_t>(memory), bytes);
    return fine ? "" : "is not memory of the device to its end";
  }

 private:
  // Launches that differ in nothing that counts.
  struct Kind {
    std::size_t row = 0;  // of rows_
    Sample sample;
  };

  static Status no_values() { return unsupported("a recorder holds no values"); }
  void* handle() { return reinterpret_cast<void*>(++handles_ * kSector); }
  Tally& tally() { return capture_ ? *capture_ : total_; }
  Status move(Moved& moved, std::initializer_list<const void*> places, std::size_t bytes);
  std::string kind_of(const KernelEntry& entry, const gpu::LaunchShape& shape,
                      const void* arguments, std::size_t bytes) const;
  Result<std::size_t> add_kind(const KernelEntry& entry, const gpu::LaunchShape& shape,
                               const void* arguments);
  std::size_t row_of(const KernelEntry& entry, const gpu::LaunchShape& shape);

  const RecorderOptions options_;
  const std::vector<KernelEntry> kernels_;
  const bool watched_;
  Reservations memory_;
  std::uintptr_t handles_ = 0;
  std::vector<RecordedKernel> rows_;  // without counts
  std::vector<Kind> kinds_;
  std::map<std::string, std::size_t> kind_numbers_;
  std::vector<Gemm> shapes_;
  std::map<gpu::Graph, Tally> graphs_;
  std::optional<Tally> capture_;
  Tally total_;
  std::uint64_t graph_launches_ = 0;
};

Status RecordingDevice::move(Moved& moved, std::initializer_list<const void*> places,
                             std::size_t bytes) {
  if (bytes == 0) return {};
  for (const void* place : places) {
    if (const std::string why = why_not_memory(place, bytes); !why.empty()) {
      return invalid_argument("copy or fill of " + std::to_string(bytes) + " bytes: " + why);
    }
  }
  ++moved.count;
  moved.bytes += bytes;
  ++tally().calls;
  return {};
}

// ---- kernels

Result<std::vector<std::shared_ptr<const gpu::Kernel>>> RecordingDevice::build(
    std::span<const gpu::KernelId> kernels) {
  std::vector<std::shared_ptr<const gpu::Kernel>> built;
  for (const gpu::KernelId& id : kernels) {
    const Result<const KernelEntry*> found = find_kernel(kernels_, id);
    if (!found.ok()) return found.error();
    built.push_back(std::make_shared<NotedKernel>(**found));
  }
  return built;
}

Status RecordingDevice::launch(const gpu::Kernel& kernel, const gpu::LaunchShape& shape,
                               const void* arguments, std::size_t bytes, Stream) {
  const KernelEntry& entry = static_cast<const NotedKernel&>(kernel).entry;
  if (Status status = gpu::check_geometry(shape, limits(), kernel); !status.ok()) return status;
  if (bytes != entry.argument_bytes) {
    return invalid_argument("launch of " + kernel.id().expression + ": arguments: expected " +
                            std::to_string(entry.argument_bytes) + " bytes, got " +
                            std::to_string(bytes));
  }
  const std::string kind = kind_of(entry, shape, arguments, bytes);
  auto known = kind_numbers_.find(kind);
  if (known == kind_numbers_.end()) {
    const Result<std::size_t> added = add_kind(entry, shape, arguments);
    if (!added.ok()) return added.error();
    known = kind_numbers_.emplace(kind, *added).first;
  }
  ++tally().launches[known->second];
  ++tally().calls;
  return {};
}

// The kernel, the shape, and the arguments with each place in memory as its offset in a sector.
std::string RecordingDevice::kind_of(const KernelEntry& entry, const gpu::LaunchShape& shape,
                                     const void* arguments, std::size_t bytes) const {
  std::string kind = entry.expression;
  for (const unsigned part : {shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x,
                              shape.block.y, shape.block.z, shape.shared_bytes}) {
    kind += " " + std::to_string(part);
  }
  const auto* const begin = static_cast<const char*>(arguments);
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uintptr_t)) {
    std::uintptr_t word = 0;
    std::memcpy(&word, begin + at, std::min(sizeof word, bytes - at));
    const bool place = memory_.hold(word, 1);
    kind += (place ? " at " : " ") + std::to_string(place ? word % kSector : word);
  }
  return kind;
}

std::size_t RecordingDevice::row_of(const KernelEntry& entry, const gpu::LaunchShape& shape) {
  const gpu::Extent3& block = shape.block;
  const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const RecordedKernel& row) {
    return row.kernel.expression == entry.expression && row.block.x == block.x &&
           row.block.y == block.y && row.block.z == block.z &&
           row.shared_bytes == shape.shared_bytes;
  });
  if (found != rows_.end()) {
    if (blocks_of(found->grid) < blocks_of(shape.grid)) found->grid = shape.grid;
    return static_cast<std::size_t>(found - rows_.begin());
  }
  RecordedKernel& row = rows_.emplace_back();
  row.kernel = {entry.file, entry.expression};
  row.block = shape.block;
  row.shared_bytes = shape.shared_bytes;
  row.grid = shape.grid;
  if (!watched_) row.uncounted = "accesses are not watched in a build with these sanitizers";
  return rows_.size() - 1;
}

// A fault of the kernel is one of the plan.
Result<std::size_t> RecordingDevice::add_kind(const KernelEntry& entry,
                                              const gpu::LaunchShape& shape,
                                              const void* arguments) {
  Kind kind;
  kind.row = row_of(entry, shape);
  RecordedKernel& row = rows_[kind.row];
  if (row.uncounted.empty()) {
    if (const Status possible = check_geometry(shape); !possible.ok()) {
      row.uncounted = "the emulator cannot run it: " + possible.error().message;
    }
  }
  if (row.uncounted.empty()) {
    Result<Sample> sample =
        sample_launch(entry, shape, arguments, options_.most_requests,
                      [this](const void* at, std::size_t n) { return why_not_memory(at, n); });
    if (!sample.ok()) {
      return Error{sample.error().code,
                   "launch of " + std::string(entry.expression) + ": " + sample.error().message};
    }
    row.uncounted = sample->uncounted;
    kind.sample = std::move(*sample);
  }
  kinds_.push_back(std::move(kind));
  return kinds_.size() - 1;
}

// ---- products

Status RecordingDevice::run(const gpu::PreparedGemm& prepared, const Gemm& gemm, void*, Stream) {
  Status status = check_gemm(gemm);
  const std::string why =
      gpu::why_not_prepared(static_cast<const NotedGemm&>(prepared).shape, gemm);
  if (status.ok() && !why.empty()) status = invalid_argument(why);
  if (!status.ok()) return Error{status.error().code, "gemm: " + status.error().message};
  const auto found = std::find_if(shapes_.begin(), shapes_.end(), [&](const Gemm& g) {
    return g.transpose_a == gemm.transpose_a && g.transpose_b == gemm.transpose_b &&
           g.m == gemm.m && g.n == gemm.n && g.k == gemm.k && (g.beta == 0) == (gemm.beta == 0);
  });
  const auto shape = static_cast<std::size_t>(found - shapes_.begin());
  if (found == shapes_.end()) {
    shapes_.push_back(gemm);
    shapes_.back().a = shapes_.back().b = shapes_.back().c = nullptr;
  }
  ++tally().products[shape];
  ++tally().calls;
  return {};
}

// ---- the result

void add_lines(std::vector<MemoryLine>& sum, const Sample& sample, std::uint64_t launches) {
  const auto all = [&](std::uint64_t of_sample) {
    return static_cast<std::uint64_t>(
        std::llround(double(of_sample) / sample.share * double(launches)));
  };
  for (const MemoryLine& line : sample.lines) {
    auto found = std::find_if(sum.begin(), sum.end(), [&](const MemoryLine& one) {
      return one.line == line.line && one.access == line.access && one.shared == line.shared;
    });
    if (found == sum.end()) {
      found = sum.insert(sum.end(), {line.kernel, line.line, line.access, line.shared});
    }
    found->requests += all(line.requests);
    found->bytes += all(line.bytes);
    found->transactions += all(line.transactions);
    found->ideal += all(line.ideal);
  }
}

// "cell.cuh:9" comes before "cell.cuh:66".
auto order_of(const MemoryLine& line) {
  const std::size_t colon = line.line.rfind(':');
  const std::string number = colon == std::string::npos ? "" : line.line.substr(colon);
  return std::tuple(line.line.substr(0, colon), number.size(), number, line.shared, line.access);
}

Recording RecordingDevice::recording() const {
  Recording recording;
  recording.kernels = rows_;
  for (const auto& [number, count] : total_.launches) {
    const Kind& kind = kinds_[number];
    RecordedKernel& row = recording.kernels[kind.row];
    row.launches += count;
    if (!row.uncounted.empty()) continue;
    row.counted_share = std::min(row.counted_share, kind.sample.share);
    add_lines(row.lines, kind.sample, count);
  }
  for (const auto& [shape, count] : total_.products) {
    recording.products.push_back({shapes_[shape], count});
  }
  for (RecordedKernel& row : recording.kernels) {
    if (!row.uncounted.empty()) row.lines.clear();
    std::sort(row.lines.begin(), row.lines.end(),
              [](const MemoryLine& a, const MemoryLine& b) { return order_of(a) < order_of(b); });
  }
  recording.copies = total_.copies;
  recording.fills = total_.fills;
  recording.graphs = graph_launches_;
  recording.calls = total_.calls;
  return recording;
}

}  // namespace

double RecordedProduct::bytes() const {
  const double a = double(gemm.m) * double(gemm.k), b = double(gemm.k) * double(gemm.n);
  const double c = double(gemm.m) * double(gemm.n);
  return (a + b + c * (gemm.beta == 0 ? 1 : 2)) * double(sizeof(float));
}

std::shared_ptr<Recorder> open_recorder(const RecorderOptions& options,
                                        std::vector<KernelEntry> kernels, bool watched) {
  return std::make_shared<RecordingDevice>(options, std::move(kernels), watched);
}

std::shared_ptr<Recorder> open_recorder(const RecorderOptions& options) {
  const bool watched = !checked_kernels().empty();
  const std::span<const KernelEntry> kernels = watched ? checked_kernels() : plain_kernels();
  return open_recorder(options, {kernels.begin(), kernels.end()}, watched);
}

}  // namespace rnntune::simt
