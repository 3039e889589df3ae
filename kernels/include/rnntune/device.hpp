// SPDX-License-Identifier: Apache-2.0
// A device: where a plan's memory lives and its kernels run. The CPU is one; a CUDA device and its
// emulation are others. Plans and tuner reach the hardware through this interface only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rnntune/export.h"
#include "rnntune/result.hpp"

namespace rnntune {

// What a device is, silicon first. `key` identifies it in a tuning database; `name` is for people
// only.
struct DeviceInfo {
  std::string backend;  // "cpu", "cuda", "simt"
  std::string name;     // product name, information only
  std::string
      architecture;  // same value: a config tuned there is a fair guess here ("x86_64/avx512")
  std::string key;   // same value: the same silicon with the same limits
  std::vector<std::pair<std::string, std::string>>
      properties;             // the parts of the key, and what else identifies it
  int threads = 1;            // CPU: thread limit of this device object
  std::string threads_from;   // CPU, for people: what decided it, such as "the affinity mask"
  std::int64_t l1_bytes = 0;  // data cache per core
  std::int64_t l2_bytes = 0;  // per core (CPU), per device (CUDA)
  std::int64_t l3_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::vector<std::string> isa;  // instruction sets a kernel may use here, best first
};

// An ordered queue of work. The CPU runs every call before it returns; its stream is null.
using Stream = void*;

// C[m,n] = alpha * op(A)[m,k] * op(B)[k,n] + beta * C, column-major, exactly the arguments of
// cublasSgemm and, in double, cublasDgemm.
template <class T>
struct GemmOf {
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  T alpha = 1;
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* b = nullptr;
  std::int64_t ldb = 0;
  T beta = 0;
  T* c = nullptr;
  std::int64_t ldc = 0;
};
using Gemm = GemmOf<float>;

class RNNTUNE_EXPORT Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  virtual Result<void*> allocate(
      std::size_t bytes) = 0;  // at least 64-byte aligned; out_of_memory names the bytes
  virtual void release(void* memory) = 0;
  virtual Status to_device(void* device, const void* host, std::size_t bytes,
                           Stream stream = nullptr) = 0;
  virtual Status to_host(void* host, const void* device, std::size_t bytes,
                         Stream stream = nullptr) = 0;
  virtual Status fill(void* device, unsigned char value, std::size_t bytes,
                      Stream stream = nullptr) = 0;
  virtual Status synchronize(Stream stream = nullptr) = 0;
  virtual Status gemm(const Gemm& gemm,
                      Stream stream = nullptr) = 0;  // unsupported where no BLAS was found

  // Why the device must not touch this memory: it is not its own (a host pointer), or it ends
  // before `bytes`. Empty when it may; a CPU may touch everything.
  virtual std::string why_not_memory(const void* memory, std::size_t bytes) const {
    return static_cast<void>(memory), static_cast<void>(bytes), std::string();
  }
};

struct DeviceOptions {
  // CPU: most threads a call may use, which may be more than there are cores. 0: the smallest of
  // the affinity mask, the control group's quota, OMP_THREAD_LIMIT and OMP_NUM_THREADS.
  int threads = 0;
  std::string
      isa;  // CPU: forbid instruction sets above this one ("avx2"); empty: the best this CPU has
};

// Opens "cpu", "cuda:N" or "cuda", which is cuda:0. The error says what is missing and names the
// devices there are.
RNNTUNE_EXPORT Result<std::shared_ptr<Device>> open_device(std::string_view name,
                                                           const DeviceOptions& options = {});

// What a back end has here: its devices, or why it has none in one sentence.
struct BackendDevices {
  std::string backend;
  std::vector<DeviceInfo> devices;
  std::string absent;  // empty where there are devices
};

// Every back end. Asks the drivers and opens nothing, so that it takes neither time nor memory
// of a device. Options that are wrong are an error.
RNNTUNE_EXPORT Result<std::vector<BackendDevices>> list_devices(const DeviceOptions& options = {});

}  // namespace rnntune
