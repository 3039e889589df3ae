// SPDX-License-Identifier: Apache-2.0
#include "cuda/context.hpp"

#include <algorithm>

namespace rnntune::cuda {
namespace {

// Those after which the driver's documentation says that the process must be relaunched.
bool loses_context(CUresult result) {
  constexpr CUresult kLost[] = {
      CUDA_ERROR_ECC_UNCORRECTABLE,
      CUDA_ERROR_ILLEGAL_ADDRESS,
      CUDA_ERROR_LAUNCH_TIMEOUT,
      CUDA_ERROR_CONTEXT_IS_DESTROYED,
      CUDA_ERROR_ASSERT,
      CUDA_ERROR_HARDWARE_STACK_ERROR,
      CUDA_ERROR_ILLEGAL_INSTRUCTION,
      CUDA_ERROR_MISALIGNED_ADDRESS,
      CUDA_ERROR_INVALID_ADDRESS_SPACE,
      CUDA_ERROR_INVALID_PC,
      CUDA_ERROR_LAUNCH_FAILED,
  };
  return std::find(std::begin(kLost), std::end(kLost), result) != std::end(kLost);
}

Status read_attributes(const CudaDriver& driver, Description& description, int& major, int& minor) {
  gpu::Limits& limits = description.limits;
  int shared_block = 0, shared_multiprocessor = 0, l2 = 0;
  const struct {
    CUdevice_attribute attribute;
    int& value;
    const char* name;
  } rows[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major, "COMPUTE_CAPABILITY_MAJOR"},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor, "COMPUTE_CAPABILITY_MINOR"},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, limits.multiprocessors, "MULTIPROCESSOR_COUNT"},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, limits.max_threads_per_block,
       "MAX_THREADS_PER_BLOCK"},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, limits.max_threads_per_multiprocessor,
       "MAX_THREADS_PER_MULTIPROCESSOR"},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, limits.registers_per_multiprocessor,
       "MAX_REGISTERS_PER_MULTIPROCESSOR"},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, shared_block,
       "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, shared_multiprocessor,
       "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, l2, "L2_CACHE_SIZE"},
  };
  for (const auto& row : rows) {
    const CUresult result =
        driver.cuDeviceGetAttribute(&row.value, row.attribute, description.device);
    if (result != CUDA_SUCCESS) {
      return driver_error(driver, result, "cuDeviceGetAttribute", row.name);
    }
  }
  limits.compute_capability = 10 * major + minor;
  limits.shared_bytes_per_block = shared_block;
  limits.shared_bytes_per_multiprocessor = shared_multiprocessor;
  description.info.l2_bytes = l2;
  return {};
}

}  // namespace

Result<int> count_devices(const CudaDriver& driver) {
  CUresult result = driver.cuInit(0);
  if (result != CUDA_SUCCESS) return driver_error(driver, result, "cuInit", "");
  int count = 0;
  result = driver.cuDeviceGetCount(&count);
  if (result != CUDA_SUCCESS) return driver_error(driver, result, "cuDeviceGetCount", "");
  if (count == 0) return Error{ErrorCode::not_found, "the driver sees no CUDA device"};
  return count;
}

Result<Description> describe_device(const CudaDriver& driver, int ordinal) {
  const std::string which = "ordinal " + std::to_string(ordinal);
  Description description;
  CUresult result = driver.cuDeviceGet(&description.device, ordinal);
  if (result != CUDA_SUCCESS) return driver_error(driver, result, "cuDeviceGet", which);
  char name[256] = {};
  result = driver.cuDeviceGetName(name, int(sizeof name) - 1, description.device);
  if (result != CUDA_SUCCESS) return driver_error(driver, result, "cuDeviceGetName", which);
  std::size_t memory = 0;
  result = driver.cuDeviceTotalMem(&memory, description.device);
  if (result != CUDA_SUCCESS) return driver_error(driver, result, "cuDeviceTotalMem", name);
  int version = 0, major = 0, minor = 0;
  result = driver.cuDriverGetVersion(&version);
  if (result != CUDA_SUCCESS) return driver_error(driver, result, "cuDriverGetVersion", "");
  if (Status status = read_attributes(driver, description, major, minor); !status.ok()) {
    return status.error();
  }

  constexpr std::size_t kGibibyte = std::size_t{1} << 30;
  DeviceInfo& info = description.info;
  info.backend = "cuda";
  info.name = name;
  info.architecture = "sm_" + std::to_string(description.limits.compute_capability);
  info.memory_bytes = std::int64_t(memory);
  // Memory in whole GiB: what the driver keeps for itself may differ between its versions.
  info.properties = {{"compute_capability", std::to_string(major) + "." + std::to_string(minor)},
                     {"multiprocessors", std::to_string(description.limits.multiprocessors)},
                     {"memory_gib", std::to_string((memory + kGibibyte / 2) / kGibibyte)},
                     {"l2_bytes", std::to_string(info.l2_bytes)}};
  info.key = "cuda";
  for (const auto& [part, value] : info.properties) info.key += ";" + part + "=" + value;
  info.properties.emplace_back(
      "driver", std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10));
  return description;
}

Context::Current::Current(const Context& context) : context(context) {
  CUcontext before = nullptr;
  result = context.driver_.cuCtxGetCurrent(&before);
  if (result != CUDA_SUCCESS || before == context.context_) return;
  result = context.driver_.cuCtxPushCurrent(context.context_);
  pushed = result == CUDA_SUCCESS;
}

Context::Current::~Current() {
  CUcontext ours = nullptr;
  if (pushed) context.driver_.cuCtxPopCurrent(&ours);
}

Result<std::shared_ptr<const Context>> Context::open(const CudaDriver& driver, int ordinal) {
  const Result<int> count = count_devices(driver);
  if (!count.ok()) return count.error();
  if (ordinal < 0 || ordinal >= *count) {
    return Error{ErrorCode::not_found,
                 "expected cuda:0" + (*count == 1 ? "" : " to cuda:" + std::to_string(*count - 1)) +
                     ", which is what the driver sees"};
  }
  Result<Description> description = describe_device(driver, ordinal);
  if (!description.ok()) return description.error();
  const std::shared_ptr<Context> context(new Context(driver, std::move(*description)));
  const CUresult result = driver.cuDevicePrimaryCtxRetain(&context->context_, context->device());
  if (result != CUDA_SUCCESS) {
    context->context_ = nullptr;
    return driver_error(driver, result, "cuDevicePrimaryCtxRetain", context->info().name);
  }
  return std::shared_ptr<const Context>(context);
}

Context::~Context() {
  if (context_ != nullptr) driver_.cuDevicePrimaryCtxRelease(device());
}

Error Context::failure(CUresult result, const char* call, const std::string& argument) const {
  Error error = driver_error(driver_, result, call, argument);
  if (!loses_context(result)) return error;
  const std::lock_guard lock(mutex_);
  if (lost_reason_.empty()) lost_reason_ = error.message;
  lost_ = true;
  return error;
}

Error Context::lost_error() const {
  const std::lock_guard lock(mutex_);
  return {ErrorCode::internal,
          "the device's context is lost to this process since " + lost_reason_};
}

}  // namespace rnntune::cuda
