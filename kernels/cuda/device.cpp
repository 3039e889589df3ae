// SPDX-License-Identifier: Apache-2.0
// Unverified: how a real driver answers. Tests put fakes behind the tables; they prove which calls
// are made, with what, and how failures are told, but neither results nor speed.
#include "cuda/device.hpp"

#include <algorithm>
#include <map>

#include "cuda/gemm.hpp"
#include "cuda/kernel.hpp"
#include "cuda/libraries.hpp"
#include "device/blas.hpp"

namespace rnntune::cuda {
namespace {

CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }
CUstream native(Stream stream) { return static_cast<CUstream>(stream); }
CUevent native_event(gpu::Event event) { return static_cast<CUevent>(event); }

auto bytes_text(std::size_t bytes) {
  return [bytes] { return std::to_string(bytes) + " bytes"; };
}

class CudaDevice final : public gpu::GpuDevice {
 public:
  CudaDevice(std::shared_ptr<const Context> context, const Libraries& libraries,
             std::string cache_folder, std::span<const KernelText> texts)
      : context_(std::move(context)),
        open_nvrtc_(libraries.nvrtc),
        gemm_(std::make_shared<GemmLibrary>(context_, libraries.cublas)),
        matmul_(std::make_shared<LtLibrary>(context_, libraries.cublas_lt)),
        cache_folder_(std::move(cache_folder)),
        texts_(texts) {}

  const DeviceInfo& info() const override { return context_->info(); }
  const gpu::Limits& limits() const override { return context_->limits(); }
  int ordinal() const override { return context_->device(); }

  Result<void*> allocate(std::size_t bytes) override {
    CUdeviceptr memory = 0;
    // The driver refuses nothing at all; aligned to 256 bytes.
    Status status = run("cuMemAlloc", bytes_text(bytes),
                        [&] { return driver().cuMemAlloc(&memory, bytes == 0 ? 1 : bytes); });
    if (!status.ok()) return status.error();
    return reinterpret_cast<void*>(memory);
  }
  void release(void* memory) override {
    if (memory == nullptr) return;
    context_->release([&] { driver().cuMemFree(address(memory)); });
  }

  // Pageable host memory is staged by the driver, which then returns when it has read all of it.
  Status to_device(void* device, const void* host, std::size_t bytes, Stream stream) override {
    if (bytes == 0) return {};
    return run("cuMemcpyHtoDAsync", bytes_text(bytes), [&] {
      return driver().cuMemcpyHtoDAsync(address(device), host, bytes, native(stream));
    });
  }
  Status to_host(void* host, const void* device, std::size_t bytes, Stream stream) override {
    if (bytes == 0) return {};
    return run("cuMemcpyDtoHAsync", bytes_text(bytes), [&] {
      return driver().cuMemcpyDtoHAsync(host, address(device), bytes, native(stream));
    });
  }
  Status fill(void* device, unsigned char value, std::size_t bytes, Stream stream) override {
    if (bytes == 0) return {};
    return run("cuMemsetD8Async", bytes_text(bytes), [&] {
      return driver().cuMemsetD8Async(address(device), value, bytes, native(stream));
    });
  }
  Status copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
    if (bytes == 0) return {};
    return run("cuMemcpyDtoDAsync", bytes_text(bytes), [&] {
      return driver().cuMemcpyDtoDAsync(address(to), address(from), bytes, native(stream));
    });
  }
  Status synchronize(Stream stream) override {
    return run("cuStreamSynchronize", [&] { return driver().cuStreamSynchronize(native(stream)); });
  }

  Result<std::vector<std::shared_ptr<const gpu::Kernel>>> build(
      std::span<const gpu::KernelId> kernels) override;
  Status launch(const gpu::Kernel& kernel, const gpu::LaunchShape& shape, const void* arguments,
                std::size_t bytes, Stream stream) override {
    return static_cast<const CudaKernel&>(kernel).launch(shape, arguments, bytes, native(stream));
  }

  Result<int> resident_clusters(const gpu::Kernel& kernel,
                                const gpu::LaunchShape& shape) const override {
    return static_cast<const CudaKernel&>(kernel).resident_clusters(shape);
  }

  Status gemm(const Gemm& gemm, Stream stream) override {
    return gemm_->run(gemm, nullptr, native(stream));
  }
  int gemm_choices() const override { return kGemmHeuristics; }
  Result<std::shared_ptr<const gpu::PreparedGemm>> prepare(const Gemm& shape, int choice) override;
  Status run(const gpu::PreparedGemm& prepared, const Gemm& gemm, void* workspace,
             Stream stream) override {
    return static_cast<const CudaGemm&>(prepared).run(gemm, workspace, native(stream));
  }

  Result<Stream> create_stream() override {
    CUstream stream = nullptr;
    Status status = run("cuStreamCreate",
                        [&] { return driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING); });
    if (!status.ok()) return status.error();
    return Stream{stream};
  }
  void destroy_stream(Stream stream) override {
    context_->release([&] { driver().cuStreamDestroy(native(stream)); });
  }
  Result<gpu::Event> create_event() override {
    CUevent event = nullptr;
    Status status =
        run("cuEventCreate", [&] { return driver().cuEventCreate(&event, CU_EVENT_DEFAULT); });
    if (!status.ok()) return status.error();
    return gpu::Event{event};
  }
  void destroy_event(gpu::Event event) override {
    context_->release([&] { driver().cuEventDestroy(native_event(event)); });
  }
  Status record(gpu::Event event, Stream stream) override {
    return run("cuEventRecord",
               [&] { return driver().cuEventRecord(native_event(event), native(stream)); });
  }
  Status wait(Stream stream, gpu::Event event) override {
    return run("cuStreamWaitEvent", [&] {
      return driver().cuStreamWaitEvent(native(stream), native_event(event), CU_EVENT_WAIT_DEFAULT);
    });
  }
  Result<double> elapsed_us(gpu::Event from, gpu::Event to) override {
    float milliseconds = 0;
    Status status = run("cuEventElapsedTime", [&] {
      return driver().cuEventElapsedTime(&milliseconds, native_event(from), native_event(to));
    });
    if (!status.ok()) return status.error();
    return 1e3 * double(milliseconds);
  }

  // Only calls of this thread are held to what a capture allows: another may allocate meanwhile.
  Status begin_capture(Stream stream) override {
    return run("cuStreamBeginCapture", [&] {
      return driver().cuStreamBeginCapture(native(stream), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    });
  }
  Result<gpu::Graph> end_capture(Stream stream) override;
  Status launch(gpu::Graph graph, Stream stream) override {
    return run("cuGraphLaunch", [&] {
      return driver().cuGraphLaunch(static_cast<CUgraphExec>(graph), native(stream));
    });
  }
  void destroy_graph(gpu::Graph graph) override {
    context_->release([&] { driver().cuGraphExecDestroy(static_cast<CUgraphExec>(graph)); });
  }

  Status with_context(const std::function<void()>& body) override {
    return run("cuCtxPushCurrent", [&] { return body(), CUDA_SUCCESS; });
  }
  std::string why_not_memory(const void* memory, std::size_t bytes) const override;

 private:
  const CudaDriver& driver() const { return context_->driver(); }
  template <class... Arguments>
  Status run(const char* call, const Arguments&... arguments) const {
    return context_->run(call, arguments...);
  }
  Result<const Compiler*> compiler();  // mutex_ is held

  const std::shared_ptr<const Context> context_;
  const std::function<Result<Nvrtc>()> open_nvrtc_;
  const std::shared_ptr<GemmLibrary> gemm_;
  const std::shared_ptr<LtLibrary> matmul_;
  const std::string cache_folder_;
  const std::span<const KernelText> texts_;
  std::mutex mutex_;
  std::unique_ptr<const Compiler> compiler_;
  // Those in use, by file and expression.
  std::map<std::pair<std::string, std::string>, std::weak_ptr<const gpu::Kernel>> loaded_;
};

Result<const Compiler*> CudaDevice::compiler() {
  if (compiler_ == nullptr) {
    const Result<Nvrtc> nvrtc = open_nvrtc_();
    if (!nvrtc.ok()) return unsupported("kernels: " + nvrtc.error().message);
    compiler_ = std::make_unique<Compiler>(*nvrtc, texts_, cache_folder_);
  }
  return compiler_.get();
}

Result<std::vector<std::shared_ptr<const gpu::Kernel>>> CudaDevice::build(
    std::span<const gpu::KernelId> kernels) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const gpu::Kernel>> built;
  std::vector<gpu::KernelId> missing;
  for (const gpu::KernelId& id : kernels) {
    built.push_back(loaded_[{id.file, id.expression}].lock());
    const bool asked = std::find(missing.begin(), missing.end(), id) != missing.end();
    if (built.back() == nullptr && !asked) missing.push_back(id);
  }
  if (missing.empty()) return built;
  if (Status status = context_->usable(); !status.ok()) return status.error();
  const Result<const Compiler*> with = compiler();
  if (!with.ok()) return with.error();
  const Result<std::vector<Binary>> binaries = (*with)->compile(missing, info().architecture);
  if (!binaries.ok()) return binaries.error();
  for (std::size_t i = 0; i < missing.size(); ++i) {
    Result<std::shared_ptr<const gpu::Kernel>> kernel =
        CudaKernel::load(context_, missing[i], (*binaries)[i]);
    if (!kernel.ok()) return kernel.error();
    loaded_[{missing[i].file, missing[i].expression}] = *kernel;
    for (std::size_t at = 0; at < kernels.size(); ++at) {
      if (kernels[at] == missing[i]) built[at] = *kernel;
    }
  }
  return built;
}

Result<std::shared_ptr<const gpu::PreparedGemm>> CudaDevice::prepare(const Gemm& shape,
                                                                     int choice) {
  if (Status status = check_gemm(shape); !status.ok()) return status.error();
  if (choice < 0 || choice > kGemmHeuristics) {
    return invalid_argument("gemm: choice: expected 0 to " + std::to_string(kGemmHeuristics) +
                            ", got " + std::to_string(choice));
  }
  // Without a term there is nothing to choose.
  const bool empty = shape.m == 0 || shape.n == 0 || shape.k == 0;
  Result<std::shared_ptr<const CudaGemm>> prepared =
      choice == 0 || empty ? gemm_->prepare(shape) : matmul_->prepare(shape, choice);
  if (!prepared.ok()) return prepared.error();
  return std::shared_ptr<const gpu::PreparedGemm>(std::move(*prepared));
}

Result<gpu::Graph> CudaDevice::end_capture(Stream stream) {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  Status status = run("cuStreamEndCapture",
                      [&] { return driver().cuStreamEndCapture(native(stream), &graph); });
  if (!status.ok()) return status.error();
  status = run("cuGraphInstantiateWithFlags",
               [&] { return driver().cuGraphInstantiateWithFlags(&executable, graph, 0); });
  context_->release([&] { driver().cuGraphDestroy(graph); });
  if (!status.ok()) return status.error();
  return gpu::Graph{executable};
}

std::string CudaDevice::why_not_memory(const void* memory, std::size_t bytes) const {
  if (bytes == 0) return {};
  unsigned type = 0;
  int ordinal = -1;
  CUdeviceptr base = 0;
  std::size_t size = 0;
  // Memory that the driver does not know is an invalid value to it.
  Status status = run("cuPointerGetAttribute", [&] {
    return driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(memory));
  });
  if (!status.ok() || type != CU_MEMORYTYPE_DEVICE) {
    return "is not memory of the device" + (status.ok() ? "" : " (" + status.error().message + ")");
  }
  status = run("cuPointerGetAttribute", [&] {
    return driver().cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                          address(memory));
  });
  if (!status.ok()) return "is not memory of the device (" + status.error().message + ")";
  if (ordinal != context_->device()) {
    return "is memory of cuda:" + std::to_string(ordinal) +
           ", not of cuda:" + std::to_string(context_->device());
  }
  status = run("cuMemGetAddressRange",
               [&] { return driver().cuMemGetAddressRange(&base, &size, address(memory)); });
  if (!status.ok()) return "is not memory of the device (" + status.error().message + ")";
  const std::size_t left = size - std::size_t(address(memory) - base);
  if (left >= bytes) return {};
  return "ends after " + std::to_string(left) + " bytes, expected " + std::to_string(bytes);
}

}  // namespace

Result<std::vector<DeviceInfo>> list_cuda(const CudaDriver& driver) {
  const Result<int> count = count_devices(driver);
  if (!count.ok()) return count.error();
  std::vector<DeviceInfo> devices;
  for (int ordinal = 0; ordinal < *count; ++ordinal) {
    Result<Description> description = describe_device(driver, ordinal);
    if (!description.ok()) return description.error();
    devices.push_back(std::move(description->info));
  }
  return devices;
}

Result<std::shared_ptr<gpu::GpuDevice>> open_cuda(const Libraries& libraries,
                                                  const OpenOptions& options,
                                                  std::span<const KernelText> texts) {
  Result<std::shared_ptr<const Context>> context = Context::open(libraries.driver, options.ordinal);
  if (!context.ok()) return context.error();
  return std::shared_ptr<gpu::GpuDevice>(std::make_shared<CudaDevice>(
      std::move(*context), libraries, kernel_cache(options.cache_folder), texts));
}

namespace {

Result<CudaDriver> this_driver() {
  const Result<CudaDriver> driver = open_cuda_driver();
  if (driver.ok()) return driver;
  return Error{driver.error().code, "no CUDA driver: " + driver.error().message};
}

}  // namespace

Result<std::shared_ptr<Device>> open_cuda(const OpenOptions& options) {
  return open_cuda(options, kernel_texts());
}

Result<std::shared_ptr<Device>> open_cuda(const OpenOptions& options,
                                          std::span<const KernelText> texts) {
  const Result<CudaDriver> driver = this_driver();
  if (!driver.ok()) return driver.error();
  const auto folders = [data = options.data_folder] { return cuda_library_folders(data); };
  const Libraries libraries{.driver = *driver,
                            .nvrtc = [folders] { return open_nvrtc(folders()); },
                            .cublas = [folders] { return open_cublas(folders()); },
                            .cublas_lt = [folders] { return open_cublas_lt(folders()); }};
  Result<std::shared_ptr<gpu::GpuDevice>> device = open_cuda(libraries, options, texts);
  if (!device.ok()) return device.error();
  return std::shared_ptr<Device>(std::move(*device));
}

Result<std::vector<DeviceInfo>> list_cuda() {
  const Result<CudaDriver> driver = this_driver();
  if (!driver.ok()) return driver.error();
  return list_cuda(*driver);
}

}  // namespace rnntune::cuda
