// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_cuda.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

namespace rnntune {
namespace {

std::unique_ptr<FakeCuda>& state() {
  static std::unique_ptr<FakeCuda> fake = std::make_unique<FakeCuda>();
  return fake;
}

// The thread's stack of contexts.
thread_local std::vector<CUcontext> contexts;

// Calls that need a context current on their thread, as the driver's do.
CUresult in_context(const char* name) {
  const auto status = CUresult(fake_call(name));
  if (status != CUDA_SUCCESS) return status;
  return contexts.empty() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

using Lock = std::lock_guard<std::mutex>;

template <class Handle>
CUresult create(const char* name, Handle* handle) {
  const Lock lock(fake_cuda_mutex());
  const CUresult status = in_context(name);
  if (status == CUDA_SUCCESS) *handle = static_cast<Handle>(fake_handle());
  return status;
}

CUresult destroy(const char* name, void* handle) {
  const Lock lock(fake_cuda_mutex());
  const CUresult status = in_context(name);
  return fake_cuda().alive.erase(handle) == 1 ? status : CUDA_ERROR_INVALID_HANDLE;
}

CUresult simple(const char* name) {
  const Lock lock(fake_cuda_mutex());
  return in_context(name);
}

// The allocation that holds an address.
std::optional<std::pair<std::uintptr_t, std::size_t>> allocation(CUdeviceptr at) {
  for (const auto& [base, bytes] : fake_cuda().memory) {
    if (at >= base && at - base < bytes) return {{base, bytes}};
  }
  return {};
}

CUresult device_attribute(int* value, CUdevice_attribute attribute, CUdevice) {
  const Lock lock(fake_cuda_mutex());
  const FakeCuda& fake = fake_cuda();
  const std::map<CUdevice_attribute, int> values = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, fake.major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, fake.minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 * 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 * 1024},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20}};
  *value = values.at(attribute);
  return CUresult(fake_call("cuDeviceGetAttribute"));
}

void fill_devices(CudaDriver& driver) {
  driver.cuInit = [](unsigned) {
    const Lock lock(fake_cuda_mutex());
    return CUresult(fake_call("cuInit"));
  };
  driver.cuDriverGetVersion = [](int* version) {
    *version = 13000;
    return CUDA_SUCCESS;
  };
  driver.cuGetErrorName = [](CUresult status, const char** name) {
    *name = status == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
  };
  driver.cuGetErrorString = [](CUresult, const char** text) {
    *text = "as asked";
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetCount = [](int* count) {
    *count = fake_cuda().devices;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGet = [](CUdevice* device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetName = [](char* name, int size, CUdevice) {
    std::strncpy(name, "Fake GPU", std::size_t(size));
    return CUDA_SUCCESS;
  };
  driver.cuDeviceTotalMem = [](std::size_t* bytes, CUdevice) {
    *bytes = (std::size_t{80} << 30) - 12345678;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetAttribute = device_attribute;
  driver.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
    const Lock lock(fake_cuda_mutex());
    *context = reinterpret_cast<CUcontext>(std::uintptr_t(0x1000) + std::uintptr_t(device));
    fake_cuda().retained += 1;
    return CUresult(fake_call("cuDevicePrimaryCtxRetain"));
  };
  driver.cuDevicePrimaryCtxRelease = [](CUdevice) {
    const Lock lock(fake_cuda_mutex());
    fake_cuda().retained -= 1;
    return CUresult(fake_call("cuDevicePrimaryCtxRelease"));
  };
  driver.cuCtxGetCurrent = [](CUcontext* context) {
    *context = contexts.empty() ? nullptr : contexts.back();
    return CUDA_SUCCESS;
  };
  driver.cuCtxPushCurrent = [](CUcontext context) {
    contexts.push_back(context);
    return CUDA_SUCCESS;
  };
  driver.cuCtxPopCurrent = [](CUcontext* context) {
    *context = contexts.back();
    contexts.pop_back();
    return CUDA_SUCCESS;
  };
}

CUresult copy(const char* name, void* to, const void* from, std::size_t bytes) {
  const Lock lock(fake_cuda_mutex());
  const CUresult status = in_context(name);
  if (status == CUDA_SUCCESS) std::memmove(to, from, bytes);
  return status;
}

void fill_memory(CudaDriver& driver) {
  driver.cuMemAlloc = [](CUdeviceptr* memory, std::size_t bytes) {
    const Lock lock(fake_cuda_mutex());
    CUresult status = in_context("cuMemAlloc");
    if (bytes == 0) status = CUDA_ERROR_INVALID_VALUE;
    if (status != CUDA_SUCCESS) return status;
    *memory = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    fake_cuda().memory[*memory] = bytes;
    return status;
  };
  driver.cuMemFree = [](CUdeviceptr memory) {
    const Lock lock(fake_cuda_mutex());
    if (fake_cuda().memory.erase(memory) != 1) return CUDA_ERROR_INVALID_VALUE;
    std::free(reinterpret_cast<void*>(memory));
    return in_context("cuMemFree");
  };
  driver.cuMemcpyHtoDAsync = [](CUdeviceptr to, const void* from, std::size_t bytes, CUstream) {
    return copy("cuMemcpyHtoDAsync", reinterpret_cast<void*>(to), from, bytes);
  };
  driver.cuMemcpyDtoHAsync = [](void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
    return copy("cuMemcpyDtoHAsync", to, reinterpret_cast<const void*>(from), bytes);
  };
  driver.cuMemcpyDtoDAsync = [](CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
    return copy("cuMemcpyDtoDAsync", reinterpret_cast<void*>(to),
                reinterpret_cast<const void*>(from), bytes);
  };
  driver.cuMemsetD8Async = [](CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream) {
    const Lock lock(fake_cuda_mutex());
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return in_context("cuMemsetD8Async");
  };
  driver.cuMemGetAddressRange = [](CUdeviceptr* base, std::size_t* bytes, CUdeviceptr at) {
    const Lock lock(fake_cuda_mutex());
    const auto found = allocation(at);
    if (!found) return CUDA_ERROR_NOT_FOUND;
    *base = found->first;
    *bytes = found->second;
    return in_context("cuMemGetAddressRange");
  };
  driver.cuPointerGetAttribute = [](void* value, CUpointer_attribute attribute, CUdeviceptr at) {
    const Lock lock(fake_cuda_mutex());
    const CUresult status = in_context("cuPointerGetAttribute");
    if (!allocation(at)) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
      *static_cast<unsigned*>(value) = CU_MEMORYTYPE_DEVICE;
    } else {
      *static_cast<int*>(value) = 0;
    }
    return status;
  };
}

void fill_streams(CudaDriver& driver) {
  driver.cuStreamCreate = [](CUstream* stream, unsigned) {
    return create("cuStreamCreate", reinterpret_cast<void**>(stream));
  };
  driver.cuStreamDestroy = [](CUstream stream) { return destroy("cuStreamDestroy", stream); };
  driver.cuStreamSynchronize = [](CUstream) { return simple("cuStreamSynchronize"); };
  driver.cuStreamWaitEvent = [](CUstream, CUevent, unsigned) {
    return simple("cuStreamWaitEvent");
  };
  driver.cuStreamBeginCapture = [](CUstream stream, CUstreamCaptureMode) {
    const Lock lock(fake_cuda_mutex());
    const CUresult status = in_context("cuStreamBeginCapture");
    if (status != CUDA_SUCCESS) return status;
    return fake_cuda().capturing.insert(stream).second ? status : CUDA_ERROR_ILLEGAL_STATE;
  };
  // A failed capture ends too, and leaves no graph.
  driver.cuStreamEndCapture = [](CUstream stream, CUgraph* graph) {
    const Lock lock(fake_cuda_mutex());
    const CUresult status = in_context("cuStreamEndCapture");
    *graph = nullptr;
    if (fake_cuda().capturing.erase(stream) == 0) return CUDA_ERROR_ILLEGAL_STATE;
    if (status == CUDA_SUCCESS) *graph = static_cast<CUgraph>(fake_handle());
    return status;
  };
  driver.cuEventCreate = [](CUevent* event, unsigned) {
    return create("cuEventCreate", reinterpret_cast<void**>(event));
  };
  driver.cuEventDestroy = [](CUevent event) { return destroy("cuEventDestroy", event); };
  driver.cuEventRecord = [](CUevent, CUstream) { return simple("cuEventRecord"); };
  driver.cuEventElapsedTime = [](float* milliseconds, CUevent, CUevent) {
    *milliseconds = 1.5f;
    return simple("cuEventElapsedTime");
  };
  driver.cuGraphInstantiateWithFlags = [](CUgraphExec* executable, CUgraph, unsigned long long) {
    return create("cuGraphInstantiateWithFlags", reinterpret_cast<void**>(executable));
  };
  driver.cuGraphDestroy = [](CUgraph graph) { return destroy("cuGraphDestroy", graph); };
  driver.cuGraphExecDestroy = [](CUgraphExec graph) {
    return destroy("cuGraphExecDestroy", graph);
  };
  driver.cuGraphLaunch = [](CUgraphExec, CUstream) { return simple("cuGraphLaunch"); };
}

CUresult launch(const CUlaunchConfig* config, CUfunction function, void** parameters, void**) {
  const Lock lock(fake_cuda_mutex());
  const CUresult status = in_context("cuLaunchKernelEx");
  if (status != CUDA_SUCCESS) return status;
  FakeLaunch launch{.function = function,
                    .stream = config->hStream,
                    .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                    .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                    .shared_bytes = config->sharedMemBytes,
                    .parameters = parameters};
  std::memcpy(&launch.first_argument, parameters[0], sizeof(int));
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      launch.cooperative = attribute.value.cooperative != 0;
    } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      launch.cluster[0] = attribute.value.clusterDim.x;
      launch.cluster[1] = attribute.value.clusterDim.y;
      launch.cluster[2] = attribute.value.clusterDim.z;
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  fake_cuda().launches.push_back(launch);
  return status;
}

void fill_kernels(CudaDriver& driver) {
  driver.cuModuleLoadData = [](CUmodule* module, const void* image) {
    const CUresult status = create("cuModuleLoadData", reinterpret_cast<void**>(module));
    const Lock lock(fake_cuda_mutex());
    if (status == CUDA_SUCCESS) fake_cuda().images.push_back(static_cast<const char*>(image));
    return status;
  };
  driver.cuModuleUnload = [](CUmodule module) { return destroy("cuModuleUnload", module); };
  driver.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char* name) {
    *function = reinterpret_cast<CUfunction>(std::hash<std::string>()(name));
    return simple("cuModuleGetFunction");
  };
  driver.cuFuncGetAttribute = [](int* value, CUfunction_attribute attribute, CUfunction) {
    const Lock lock(fake_cuda_mutex());
    const auto found = fake_cuda().of_functions.find(attribute);
    *value = found == fake_cuda().of_functions.end() ? 0 : found->second;
    return in_context("cuFuncGetAttribute");
  };
  driver.cuFuncSetAttribute = [](CUfunction, CUfunction_attribute attribute, int value) {
    const Lock lock(fake_cuda_mutex());
    fake_cuda().of_functions[attribute] = value;
    return in_context("cuFuncSetAttribute");
  };
  driver.cuOccupancyMaxActiveClusters = [](int* clusters, CUfunction, const CUlaunchConfig*) {
    *clusters = fake_cuda().clusters;
    return simple("cuOccupancyMaxActiveClusters");
  };
  driver.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction, int,
                                                          std::size_t) {
    *blocks = fake_cuda().blocks_of_a_multiprocessor;
    return simple("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  };
  driver.cuLaunchKernelEx = launch;
}

}  // namespace

int FakeCuda::count(const std::string& name) const {
  return int(std::count(calls.begin(), calls.end(), name));
}

FakeCuda& fake_cuda() { return *state(); }

void reset_fake_cuda() {
  for (const auto& [base, bytes] : fake_cuda().memory) std::free(reinterpret_cast<void*>(base));
  state() = std::make_unique<FakeCuda>();
}

std::mutex& fake_cuda_mutex() {
  static std::mutex mutex;
  return mutex;
}

int fake_call(const char* name) {
  FakeCuda& fake = fake_cuda();
  fake.calls.push_back(name);
  const auto failure = fake.failures.find(name);
  return failure == fake.failures.end() ? 0 : failure->second;
}

void* fake_handle() {
  static std::uintptr_t last = 0x10000;
  last += 16;
  auto* const handle = reinterpret_cast<void*>(last);
  fake_cuda().alive.insert(handle);
  return handle;
}

CudaDriver fake_driver() {
  CudaDriver driver;
  fill_devices(driver);
  fill_memory(driver);
  fill_streams(driver);
  fill_kernels(driver);
  return driver;
}

cuda::Libraries fake_libraries() {
  return {.driver = fake_driver(),
          .nvrtc = [] { return Result<Nvrtc>(fake_nvrtc()); },
          .cublas = [] { return Result<Cublas>(fake_cublas()); },
          .cublas_lt = [] { return Result<CublasLt>(fake_cublas_lt()); }};
}

}  // namespace rnntune
