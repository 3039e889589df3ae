// SPDX-License-Identifier: Apache-2.0
// The device's half has run on no GPU yet: its order of calls is that of CUPTI's documentation,
// checked with a table of fakes only. The host's half is tested with the real library.
#include "tuner/gpu/cupti_counters.hpp"

#include <functional>
#include <set>
#include <string_view>
#include <utility>

namespace rnntune::tuner {
namespace {

// Calls a function of CUPTI, all of which take one struct.
template <class Params>
Status call(const CuptiCounters& cupti, const char* name, CUptiResult (*function)(Params*),
            Params& params) {
  const CUptiResult result = function(&params);
  if (result == CUPTI_SUCCESS) return {};
  return cupti_error(cupti.cuptiGetResultString, result, name);
}

// Declares parameters with the size that tells CUPTI which fields this build knows.
#define RNNTUNE_PARAMS(Type, name) \
  Type name{};                     \
  name.structSize = Type##_STRUCT_SIZE

std::string base_of(std::string_view metric) {
  return std::string(metric.substr(0, metric.find('.')));
}

// A chain of calls on the device; what was begun is ended on every way out, last first.
class Session {
 public:
  Session(const CuptiCounters& cupti, CUcontext context) : cupti_(cupti), context_(context) {}
  Session(const Session&) = delete;
  ~Session() { close(); }

  Status open() {
    RNNTUNE_PARAMS(CUpti_Profiler_Initialize_Params, initialize);
    Status status =
        call(cupti_, "cuptiProfilerInitialize", cupti_.cuptiProfilerInitialize, initialize);
    initialized_ = status.ok();
    return status;
  }

  Result<std::string> chip(int ordinal) const {
    RNNTUNE_PARAMS(CUpti_Device_GetChipName_Params, name);
    name.deviceIndex = std::size_t(ordinal);
    Status status = call(cupti_, "cuptiDeviceGetChipName", cupti_.cuptiDeviceGetChipName, name);
    if (!status.ok()) return status.error();
    return std::string(name.pChipName);
  }

  Result<std::vector<std::uint8_t>> availability() const {
    std::vector<std::uint8_t> image;
    RNNTUNE_PARAMS(CUpti_Profiler_GetCounterAvailability_Params, available);
    available.ctx = context_;
    for (int turn = 0; turn < 2; ++turn) {  // the size, then the image
      Status status = call(cupti_, "cuptiProfilerGetCounterAvailability",
                           cupti_.cuptiProfilerGetCounterAvailability, available);
      if (!status.ok()) return status.error();
      image.resize(available.counterAvailabilityImageSize);
      available.pCounterAvailabilityImage = image.data();
    }
    return image;
  }

  // Takes the counters of the GPU, and prepares an image for the values of one range.
  Status enable(const CounterHost& host) {
    RNNTUNE_PARAMS(CUpti_RangeProfiler_Enable_Params, enable);
    enable.ctx = context_;
    Status status =
        call(cupti_, "cuptiRangeProfilerEnable", cupti_.cuptiRangeProfilerEnable, enable);
    if (!status.ok()) return status;
    profiler_ = enable.pRangeProfilerObject;
    std::vector<const char*> metrics = host.metrics();
    RNNTUNE_PARAMS(CUpti_RangeProfiler_GetCounterDataSize_Params, size);
    size.pRangeProfilerObject = profiler_;
    size.pMetricNames = metrics.data();
    size.numMetrics = metrics.size();
    size.maxNumOfRanges = size.maxNumRangeTreeNodes = 1;
    status = call(cupti_, "cuptiRangeProfilerGetCounterDataSize",
                  cupti_.cuptiRangeProfilerGetCounterDataSize, size);
    if (!status.ok()) return status;
    image_.resize(size.counterDataSize);
    RNNTUNE_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, image);
    image.pRangeProfilerObject = profiler_;
    image.counterDataSize = image_.size();
    image.pCounterData = image_.data();
    status = call(cupti_, "cuptiRangeProfilerCounterDataImageInitialize",
                  cupti_.cuptiRangeProfilerCounterDataImageInitialize, image);
    return status.ok() ? configure(host) : status;
  }

  // The step once; whether that was the last pass.
  Result<bool> pass(const Probe& step) {
    Status status = on_profiler<CUpti_RangeProfiler_Start_Params>(
        "cuptiRangeProfilerStart", cupti_.cuptiRangeProfilerStart,
        CUpti_RangeProfiler_Start_Params_STRUCT_SIZE);
    if (!status.ok()) return status.error();
    RNNTUNE_PARAMS(CUpti_RangeProfiler_PushRange_Params, push);
    push.pRangeProfilerObject = profiler_;
    push.pRangeName = "step";
    status = call(cupti_, "cuptiRangeProfilerPushRange", cupti_.cuptiRangeProfilerPushRange, push);
    if (status.ok()) {
      status = step();
      // Also after a step that failed, so that the profiler can be left.
      Status popped = on_profiler<CUpti_RangeProfiler_PopRange_Params>(
          "cuptiRangeProfilerPopRange", cupti_.cuptiRangeProfilerPopRange,
          CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE);
      if (status.ok()) status = std::move(popped);
    }
    RNNTUNE_PARAMS(CUpti_RangeProfiler_Stop_Params, stop);
    stop.pRangeProfilerObject = profiler_;
    Status stopped = call(cupti_, "cuptiRangeProfilerStop", cupti_.cuptiRangeProfilerStop, stop);
    if (status.ok()) status = std::move(stopped);
    if (!status.ok()) return status.error();
    return stop.isAllPassSubmitted != 0;
  }

  Result<std::vector<std::uint8_t>> decode() {
    RNNTUNE_PARAMS(CUpti_RangeProfiler_DecodeData_Params, decoded);
    decoded.pRangeProfilerObject = profiler_;
    Status status =
        call(cupti_, "cuptiRangeProfilerDecodeData", cupti_.cuptiRangeProfilerDecodeData, decoded);
    if (!status.ok()) return status.error();
    if (decoded.numOfRangeDropped == 0) return image_;
    return Error{ErrorCode::internal, "CUPTI dropped the counters of the step"};
  }

 private:
  template <class Params>
  Status on_profiler(const char* name, CUptiResult (*function)(Params*), std::size_t size) {
    Params params{};
    params.structSize = size;
    params.pRangeProfilerObject = profiler_;
    return call(cupti_, name, function, params);
  }

  // One range of one level; the user, that is us, repeats the step.
  Status configure(const CounterHost& host) {
    RNNTUNE_PARAMS(CUpti_RangeProfiler_SetConfig_Params, config);
    config.pRangeProfilerObject = profiler_;
    config.configSize = host.config().size();
    config.pConfig = host.config().data();
    config.counterDataImageSize = image_.size();
    config.pCounterDataImage = image_.data();
    config.range = CUPTI_UserRange;
    config.replayMode = CUPTI_UserReplay;
    config.maxRangesPerPass = 1;
    config.numNestingLevels = config.minNestingLevel = config.targetNestingLevel = 1;
    return call(cupti_, "cuptiRangeProfilerSetConfig", cupti_.cuptiRangeProfilerSetConfig, config);
  }

  void close() {
    if (profiler_ != nullptr) {
      static_cast<void>(on_profiler<CUpti_RangeProfiler_Disable_Params>(
                            "cuptiRangeProfilerDisable", cupti_.cuptiRangeProfilerDisable,
                            CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE)
                            .ok());
    }
    if (!initialized_) return;
    RNNTUNE_PARAMS(CUpti_Profiler_DeInitialize_Params, end);
    cupti_.cuptiProfilerDeInitialize(&end);
  }

  const CuptiCounters& cupti_;
  CUcontext context_;
  bool initialized_ = false;
  CUpti_RangeProfiler_Object* profiler_ = nullptr;
  std::vector<std::uint8_t> image_;
};

// The device's primary context, current on this thread while this lives.
class PrimaryContext {
 public:
  explicit PrimaryContext(const CudaDriver& driver) : driver_(driver) {}
  PrimaryContext(const PrimaryContext&) = delete;
  ~PrimaryContext() {
    CUcontext popped = nullptr;
    if (pushed_) driver_.cuCtxPopCurrent(&popped);
    if (context_ != nullptr) driver_.cuDevicePrimaryCtxRelease(device_);
  }

  Status open(int ordinal) {
    const struct {
      const char* name;
      std::function<CUresult()> call;
    } chain[] = {
        {"cuInit", [&] { return driver_.cuInit(0); }},
        {"cuDeviceGet", [&] { return driver_.cuDeviceGet(&device_, ordinal); }},
        {"cuDevicePrimaryCtxRetain",
         [&] { return driver_.cuDevicePrimaryCtxRetain(&context_, device_); }},
        {"cuCtxPushCurrent", [&] { return driver_.cuCtxPushCurrent(context_); }},
    };
    for (const auto& [name, call] : chain) {
      const CUresult result = call();
      if (result != CUDA_SUCCESS) return driver_error(driver_, result, name, "");
    }
    pushed_ = true;
    return {};
  }

  CUcontext get() const { return context_; }

 private:
  const CudaDriver& driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  bool pushed_ = false;
};

}  // namespace

Result<CounterHost> CounterHost::open(const CuptiCounters& cupti, const std::string& chip,
                                      const std::vector<std::uint8_t>& availability) {
  RNNTUNE_PARAMS(CUpti_Profiler_Host_Initialize_Params, initialize);
  initialize.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  initialize.pChipName = chip.c_str();
  initialize.pCounterAvailabilityImage = availability.empty() ? nullptr : availability.data();
  const std::string name = "cuptiProfilerHostInitialize for " + chip;
  Status status = call(cupti, name.c_str(), cupti.cuptiProfilerHostInitialize, initialize);
  if (!status.ok()) return status.error();
  CounterHost host(cupti, initialize.pHostObject);
  if (status = host.plan(); !status.ok()) return status.error();
  if (status = host.make_config(); !status.ok()) return status.error();
  return host;
}

CounterHost::CounterHost(CounterHost&& other) noexcept
    : cupti_(other.cupti_),
      host_(std::exchange(other.host_, nullptr)),
      planned_(std::move(other.planned_)),
      absent_(std::move(other.absent_)),
      config_(std::move(other.config_)),
      passes_(other.passes_) {}

CounterHost::~CounterHost() {
  if (host_ == nullptr) return;
  RNNTUNE_PARAMS(CUpti_Profiler_Host_Deinitialize_Params, end);
  end.pHostObject = host_;
  cupti_.cuptiProfilerHostDeinitialize(&end);
}

// A metric that the chip lacks makes the host object useless, so names are looked up first.
Status CounterHost::plan() {
  std::set<std::string> known;
  for (int type = 0; type < CUPTI_METRIC_TYPE__COUNT; ++type) {
    RNNTUNE_PARAMS(CUpti_Profiler_Host_GetBaseMetrics_Params, base);
    base.pHostObject = host_;
    base.metricType = static_cast<CUpti_MetricType>(type);
    Status status = call(cupti_, "cuptiProfilerHostGetBaseMetrics",
                         cupti_.cuptiProfilerHostGetBaseMetrics, base);
    if (!status.ok()) return status;
    known.insert(base.ppMetricNames, base.ppMetricNames + base.numMetrics);
  }
  for (const Counter& counter : counters()) {
    const char* found = nullptr;
    for (const char* metric : counter.metrics) {
      if (found == nullptr && known.count(base_of(metric)) > 0) found = metric;
    }
    if (found == nullptr) {
      absent_.push_back(counter.name);
    } else {
      planned_.push_back({counter.name, found, 0});
    }
  }
  if (!planned_.empty()) return {};
  return unsupported("CUPTI knows none of the counters on this chip");
}

std::vector<const char*> CounterHost::metrics() const {
  std::vector<const char*> names;
  for (const CounterValue& value : planned_) names.push_back(value.metric.c_str());
  return names;
}

// All at once: CUPTI packs what is added together into few passes.
Status CounterHost::make_config() {
  std::vector<const char*> names = metrics();
  RNNTUNE_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, add);
  add.pHostObject = host_;
  add.ppMetricNames = names.data();
  add.numMetrics = names.size();
  Status status = call(cupti_, "cuptiProfilerHostConfigAddMetrics",
                       cupti_.cuptiProfilerHostConfigAddMetrics, add);
  if (!status.ok()) return status;
  RNNTUNE_PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
  size.pHostObject = host_;
  status = call(cupti_, "cuptiProfilerHostGetConfigImageSize",
                cupti_.cuptiProfilerHostGetConfigImageSize, size);
  if (!status.ok()) return status;
  config_.resize(size.configImageSize);
  RNNTUNE_PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, image);
  image.pHostObject = host_;
  image.configImageSize = config_.size();
  image.pConfigImage = config_.data();
  status = call(cupti_, "cuptiProfilerHostGetConfigImage", cupti_.cuptiProfilerHostGetConfigImage,
                image);
  if (!status.ok()) return status;
  RNNTUNE_PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, passes);
  passes.configImageSize = config_.size();
  passes.pConfigImage = config_.data();
  status = call(cupti_, "cuptiProfilerHostGetNumOfPasses", cupti_.cuptiProfilerHostGetNumOfPasses,
                passes);
  passes_ = passes.numOfPasses;
  return status;
}

Result<std::vector<CounterValue>> CounterHost::evaluate(
    const std::vector<std::uint8_t>& image) const {
  std::vector<const char*> names = metrics();
  std::vector<double> numbers(names.size());
  RNNTUNE_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, evaluate);
  evaluate.pHostObject = host_;
  evaluate.pCounterDataImage = image.data();
  evaluate.counterDataImageSize = image.size();
  evaluate.ppMetricNames = names.data();
  evaluate.numMetrics = names.size();
  evaluate.pMetricValues = numbers.data();
  Status status = call(cupti_, "cuptiProfilerHostEvaluateToGpuValues",
                       cupti_.cuptiProfilerHostEvaluateToGpuValues, evaluate);
  if (!status.ok()) return status.error();
  std::vector<CounterValue> values = planned_;
  for (std::size_t i = 0; i < values.size(); ++i) values[i].value = numbers[i];
  return values;
}

Result<CounterReport> count_step(const CudaDriver& driver, const CuptiCounters& cupti, int ordinal,
                                 const Probe& step) {
  PrimaryContext context(driver);
  if (Status status = context.open(ordinal); !status.ok()) return status.error();
  Session session(cupti, context.get());
  if (Status status = session.open(); !status.ok()) return status.error();
  const Result<std::string> chip = session.chip(ordinal);
  if (!chip.ok()) return chip.error();
  const auto availability = session.availability();
  if (!availability.ok()) return availability.error();
  const Result<CounterHost> host = CounterHost::open(cupti, *chip, *availability);
  if (!host.ok()) return host.error();
  if (Status status = session.enable(*host); !status.ok()) return status.error();
  CounterReport report{*chip, 0, {}, host->absent()};
  for (bool last = false; !last; ++report.passes) {
    // Twice what was announced: a profiler that never ends must not hang the tuner.
    if (report.passes >= 2 * host->passes() + 1) {
      return Error{ErrorCode::internal, "CUPTI asks for more passes than the " +
                                            std::to_string(host->passes()) + " it announced"};
    }
    const Result<bool> passed = session.pass(step);
    if (!passed.ok()) return passed.error();
    last = *passed;
  }
  const auto image = session.decode();
  if (!image.ok()) return image.error();
  auto values = host->evaluate(*image);
  if (!values.ok()) return values.error();
  report.values = std::move(values.value());
  return report;
}

Result<CounterReport> count_step(int ordinal, std::span<const std::string> folders,
                                 const Probe& step) {
  const Result<CudaDriver> driver = open_cuda_driver();
  if (!driver.ok()) return driver.error();
  const Result<SharedLibrary> library = open_cupti(folders);
  if (!library.ok()) return library.error();
  const Result<CuptiCounters> cupti = load_cupti_counters(*library);
  if (!cupti.ok()) return cupti.error();
  return count_step(*driver, *cupti, ordinal, step);
}

}  // namespace rnntune::tuner
