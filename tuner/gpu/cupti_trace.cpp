// SPDX-License-Identifier: Apache-2.0
// CUPTI writes a record of each piece of work into buffers of ours, in no order, and hands them
// back when they are full or flushed, on a thread of its own. A launch is known by its correlation
// id; while external ids are pushed CUPTI also records which launch was made under which of them.
// So a sample is one external id, a phase another, and what belongs together is found when all is
// there.
#include "tuner/gpu/cupti_trace.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace rnntune::tuner {
namespace {

// The layouts of CUDA 12, which later ones only extend, so that the headers of a build and the
// library of a machine may differ.
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
using FillRecord = CUpti_ActivityMemset4;
using GraphRecord = CUpti_ActivityGraphTrace;
using LaunchRecord = CUpti_ActivityExternalCorrelation;
#if CUPTI_API_VERSION >= 130000
#define SAME(older, newer, field) \
  static_assert(offsetof(older, field) == offsetof(newer, field), #newer "::" #field)
SAME(KernelRecord, CUpti_ActivityKernel10, start);
SAME(KernelRecord, CUpti_ActivityKernel10, streamId);
SAME(KernelRecord, CUpti_ActivityKernel10, correlationId);
SAME(KernelRecord, CUpti_ActivityKernel10, name);
SAME(CopyRecord, CUpti_ActivityMemcpy6, start);
SAME(CopyRecord, CUpti_ActivityMemcpy6, correlationId);
SAME(GraphRecord, CUpti_ActivityGraphTrace2, start);
SAME(GraphRecord, CUpti_ActivityGraphTrace2, correlationId);
#undef SAME
#endif

constexpr auto kSampleId = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
constexpr auto kPhaseId = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1;
constexpr std::size_t kBufferBytes = 1 << 20;  // several thousand records
constexpr std::size_t kBufferAlignment = 8;

struct Buffer {
  std::uint8_t* memory;
  std::size_t bytes;  // written
};

// CUPTI's callbacks carry nothing of the caller's, and are kept until the process ends; it may call
// them until then, so this is never destroyed.
struct Collector {
  std::mutex mutex;
  CuptiActivity cupti;         // of the open trace
  std::vector<Buffer> full;    // as they came back
  std::vector<Buffer> unused;  // to be handed out again
  std::size_t dropped = 0;
  bool open = false;
};

Collector& collector() {
  static Collector* const only = new Collector;
  return *only;
}

void CUPTIAPI request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  Collector& all = collector();
  const std::scoped_lock lock(all.mutex);
  if (all.unused.empty()) {
    auto* memory = static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
    all.unused.push_back({memory, 0});
  }
  *buffer = all.unused.back().memory;  // null: out of memory, and CUPTI drops records
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;  // as many as fit
  all.unused.pop_back();
}

void CUPTIAPI complete(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                       std::size_t written) {
  Collector& all = collector();
  const std::scoped_lock lock(all.mutex);
  if (buffer != nullptr) all.full.push_back({buffer, written});
  std::size_t dropped = 0;
  if (all.cupti.cuptiActivityGetNumDroppedRecords == nullptr) return;
  all.cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped);
  all.dropped += dropped;
}

// Records of the device, as they lie in a buffer, and what is known of launches.
struct Found {
  struct Device {
    Activity activity;
    std::uint32_t correlation;
  };
  std::vector<Device> device;
  std::unordered_map<std::uint32_t, std::uint64_t> sample_of, phase_of;  // by correlation id
  std::size_t dropped = 0;
};

template <class Record>
void add(const CUpti_Activity* raw, Activity::Kind kind, std::string name, Found& found) {
  const auto* record = reinterpret_cast<const Record*>(raw);
  Found::Device device{{}, record->correlationId};
  device.activity.kind = kind;
  device.activity.name = std::move(name);
  device.activity.start_ns = record->start;
  device.activity.end_ns = record->end;
  device.activity.stream = record->streamId;
  found.device.push_back(std::move(device));
}

void add_kernel(const CUpti_Activity* raw, Found& found) {
  const char* name = reinterpret_cast<const KernelRecord*>(raw)->name;
  add<KernelRecord>(raw, Activity::Kind::kernel, name == nullptr ? "unnamed" : name, found);
}

void add_launch(const CUpti_Activity* raw, Found& found) {
  const auto* record = reinterpret_cast<const LaunchRecord*>(raw);
  const CUpti_ExternalCorrelationKind kind = record->externalKind;
  if (kind == kSampleId) found.sample_of[record->correlationId] = record->externalId;
  if (kind == kPhaseId) found.phase_of[record->correlationId] = record->externalId;
}

// What is read of the records; other kinds are passed over.
struct Reader {
  CUpti_ActivityKind kind;
  void (*read)(const CUpti_Activity* raw, Found& found);
};
constexpr Reader kReaders[] = {
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, add_kernel},
    {CUPTI_ACTIVITY_KIND_KERNEL, add_kernel},
    {CUPTI_ACTIVITY_KIND_MEMCPY,
     [](const CUpti_Activity* raw, Found& found) {
       add<CopyRecord>(raw, Activity::Kind::copy, "copy", found);
     }},
    {CUPTI_ACTIVITY_KIND_MEMSET,
     [](const CUpti_Activity* raw, Found& found) {
       add<FillRecord>(raw, Activity::Kind::fill, "fill", found);
     }},
    {CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
     [](const CUpti_Activity* raw, Found& found) {
       add<GraphRecord>(raw, Activity::Kind::graph, "graph", found);
     }},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, add_launch},
};

void read_record(const CUpti_Activity* raw, Found& found) {
  for (const Reader& reader : kReaders) {
    if (reader.kind == raw->kind) reader.read(raw, found);
  }
}

struct EnabledKind {
  CUpti_ActivityKind kind;
  const char* name;
};
// A graph that is recorded as a whole gives no records of its kernels.
constexpr EnabledKind kGraph{CUPTI_ACTIVITY_KIND_GRAPH_TRACE, "GRAPH_TRACE"};
constexpr EnabledKind kKinds[] = {
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "CONCURRENT_KERNEL"},
    {CUPTI_ACTIVITY_KIND_MEMCPY, "MEMCPY"},
    {CUPTI_ACTIVITY_KIND_MEMSET, "MEMSET"},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, "EXTERNAL_CORRELATION"},
};
// Where external ids come with the records of calls only.
constexpr EnabledKind kCalls{CUPTI_ACTIVITY_KIND_DRIVER, "DRIVER"};

class CuptiTrace : public ActivityTrace {
 public:
  explicit CuptiTrace(const CuptiActivity& cupti) : cupti_(cupti) {}
  ~CuptiTrace() override { close(); }

  Status open(GraphDetail detail) {
    Collector& all = collector();
    {
      const std::scoped_lock lock(all.mutex);
      if (all.open) return unsupported("another trace of CUPTI is open in this process");
      all.open = opened_ = true;
      all.cupti = cupti_;
    }
    const CUptiResult result = cupti_.cuptiActivityRegisterCallbacks(request, complete);
    if (result != CUPTI_SUCCESS) return failure(result, "cuptiActivityRegisterCallbacks");
    for (const EnabledKind& kind : kKinds) {
      if (Status status = enable(kind); !status.ok()) return status;
    }
    return detail == GraphDetail::whole ? enable(kGraph) : Status();
  }

  Status enable(const EnabledKind& kind) {
    const CUptiResult result = cupti_.cuptiActivityEnable(kind.kind);
    if (result != CUPTI_SUCCESS) {
      return failure(result, std::string("cuptiActivityEnable ") + kind.name);
    }
    enabled_.push_back(kind.kind);
    return {};
  }

  Status begin() override {
    Found before;  // of what ran between samples: nobody asks
    if (Status status = deliver(0, before); !status.ok()) return status;
    const CUptiResult result = cupti_.cuptiActivityPushExternalCorrelationId(kSampleId, ++sample_);
    if (result == CUPTI_SUCCESS) return {};
    return failure(result, "cuptiActivityPushExternalCorrelationId");
  }

  Result<Activities> end() override {
    std::uint64_t last = 0;
    cupti_.cuptiActivityPopExternalCorrelationId(kSampleId, &last);
    Found found;
    // The first call waits for CUPTI to finish the records, the second leaves none behind.
    for (const std::uint32_t flag : {0u, std::uint32_t(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED)}) {
      if (Status status = deliver(flag, found); !status.ok()) return status.error();
    }
    if (found.dropped > 0) {
      return Error{ErrorCode::internal,
                   "CUPTI dropped " + std::to_string(found.dropped) + " records"};
    }
    return match(found);
  }

  Status enter(const std::string& phase) override {
    auto known = std::find(phases_.begin(), phases_.end(), phase);
    if (known == phases_.end()) known = phases_.insert(known, phase);
    const auto id = static_cast<std::uint64_t>(known - phases_.begin());
    const CUptiResult result = cupti_.cuptiActivityPushExternalCorrelationId(kPhaseId, id);
    if (result == CUPTI_SUCCESS) return {};
    return failure(result, "cuptiActivityPushExternalCorrelationId");
  }

  Status leave() override {
    std::uint64_t last = 0;
    const CUptiResult result = cupti_.cuptiActivityPopExternalCorrelationId(kPhaseId, &last);
    if (result == CUPTI_SUCCESS) return {};
    return failure(result, "cuptiActivityPopExternalCorrelationId");
  }

 private:
  Error failure(CUptiResult result, const std::string& call) const {
    return cupti_error(cupti_.cuptiGetResultString, result, call);
  }

  // Has CUPTI return its buffers, and reads them.
  Status deliver(std::uint32_t flag, Found& found) {
    const CUptiResult result = cupti_.cuptiActivityFlushAll(flag);
    if (result != CUPTI_SUCCESS) return failure(result, "cuptiActivityFlushAll");
    Collector& all = collector();
    std::vector<Buffer> full;
    {
      const std::scoped_lock lock(all.mutex);
      full.swap(all.full);
      found.dropped += std::exchange(all.dropped, 0);
    }
    Status status;
    for (const Buffer& buffer : full) {
      if (Status read = read_buffer(buffer, found); !read.ok()) status = read;
    }
    const std::scoped_lock lock(all.mutex);
    all.unused.insert(all.unused.end(), full.begin(), full.end());
    return status;
  }

  Status read_buffer(const Buffer& buffer, Found& found) const {
    CUpti_Activity* record = nullptr;
    for (;;) {
      const CUptiResult result =
          cupti_.cuptiActivityGetNextRecord(buffer.memory, buffer.bytes, &record);
      if (result == CUPTI_ERROR_MAX_LIMIT_REACHED) return {};  // the end of the buffer
      if (result != CUPTI_SUCCESS) return failure(result, "cuptiActivityGetNextRecord");
      read_record(record, found);
    }
  }

  Result<Activities> match(Found& found) const {
    Activities ours, others;
    for (Found::Device& device : found.device) {
      const auto sample = found.sample_of.find(device.correlation);
      const auto phase = found.phase_of.find(device.correlation);
      Activity& activity = device.activity;
      if (sample == found.sample_of.end()) {
        others.push_back(std::move(activity));
        continue;
      }
      if (sample->second != sample_) return stray(activity, "came a sample late");
      if (activity.start_ns == 0 || activity.end_ns < activity.start_ns) {
        return stray(activity, "has no time");
      }
      if (phase != found.phase_of.end()) activity.phase = phases_.at(phase->second);
      ours.push_back(std::move(activity));
    }
    if (ours.empty()) return Error{ErrorCode::internal, "CUPTI gave no record of the sample"};
    std::stable_sort(ours.begin(), ours.end(),
                     [](const Activity& a, const Activity& b) { return a.start_ns < b.start_ns; });
    const std::uint64_t start = ours.front().start_ns;
    const std::uint64_t end = start + std::uint64_t(std::llround(span_us(ours) * 1e3));
    for (const Activity& other : others) {
      if (other.end_ns > start && other.start_ns < end) {
        return stray(other, "lies in the sample and is of no launch of it");
      }
    }
    return ours;
  }

  static Error stray(const Activity& activity, const char* what) {
    return {ErrorCode::internal, "CUPTI's record of " + activity.name + " " + what};
  }

  void close() {
    if (!opened_) return;
    for (const CUpti_ActivityKind kind : enabled_) cupti_.cuptiActivityDisable(kind);
    Found rest;
    static_cast<void>(deliver(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, rest).ok());
    const std::scoped_lock lock(collector().mutex);
    collector().open = false;
  }

  const CuptiActivity cupti_;
  bool opened_ = false;
  std::vector<CUpti_ActivityKind> enabled_;
  std::uint64_t sample_ = 0;
  std::vector<std::string> phases_;
};

// Whether the probe's record comes and says whose it is.
Status try_out(CuptiTrace& trace, const Probe& probe) {
  if (Status status = trace.begin(); !status.ok()) return status;
  const Status ran = probe();
  const Result<Activities> found = trace.end();
  if (!ran.ok()) return ran;
  return found.ok() ? Status() : found.error();
}

}  // namespace

Result<std::unique_ptr<ActivityTrace>> open_activity_trace(const CuptiActivity& cupti,
                                                           GraphDetail detail, const Probe& probe) {
  auto trace = std::make_unique<CuptiTrace>(cupti);
  if (Status status = trace->open(detail); !status.ok()) return status.error();
  if (!try_out(*trace, probe).ok()) {
    if (Status status = trace->enable(kCalls); !status.ok()) return status.error();
    if (Status status = try_out(*trace, probe); !status.ok()) return status.error();
  }
  return std::unique_ptr<ActivityTrace>(std::move(trace));
}

Result<std::unique_ptr<ActivityTrace>> open_activity_trace(std::span<const std::string> folders,
                                                           GraphDetail detail, const Probe& probe) {
  const Result<SharedLibrary> library = open_cupti(folders);
  if (!library.ok()) return library.error();
  const Result<CuptiActivity> cupti = load_cupti_activity(*library);
  if (!cupti.ok()) return cupti.error();
  return open_activity_trace(*cupti, detail, probe);
}

}  // namespace rnntune::tuner
