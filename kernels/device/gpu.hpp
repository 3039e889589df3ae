// SPDX-License-Identifier: Apache-2.0
// A device that runs the kernels of kernels/cuda/: a CUDA device, or its emulation on the host
// (backend "simt"). Plans are written once against this interface.
//
// Every call on a stream is asynchronous: it returns when the work is queued, in order with what
// the same stream holds and in no order with other streams but through events. Arguments are copied
// before the call returns. A fault of the queued work is the error of a later call.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rnntune/device.hpp"

namespace rnntune::gpu {

struct Extent3 {
  unsigned x = 1, y = 1, z = 1;
};

// One instantiation of a kernel, the unit of compilation. The table of all of them is
// cuda/instances.hpp.
struct KernelId {
  std::string file;        // of kernels/cuda/: "pointwise.cuh"
  std::string expression;  // the template with its arguments: "rnntune::cuda::copy<false>"

  friend bool operator==(const KernelId&, const KernelId&) = default;
};

// What the loaded binary needs; all zero where the device does not know (simt).
struct KernelResources {
  int registers = 0;            // of a thread
  int local_bytes = 0;          // of a thread: stack and spills
  int static_shared_bytes = 0;  // of a block
  int max_threads = 0;          // of a block, by registers
};

// A kernel ready to launch. It keeps what it needs alive, its device included.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual const KernelId& id() const = 0;
  virtual const KernelResources& resources() const = 0;
};

struct LaunchShape {
  Extent3 grid{}, block{};
  unsigned shared_bytes = 0;  // dynamic shared memory
  Extent3 cluster{};          // blocks of a thread-block cluster; 1 1 1: none
  bool cooperative = false;   // all blocks are resident at once and may meet at a grid barrier
};

// A product whose algorithm was chosen at plan time.
class PreparedGemm {
 public:
  virtual ~PreparedGemm() = default;
  virtual std::size_t workspace_bytes() const = 0;
};

using Event = void*;
using Graph = void*;

// Compute capability, 90 for 9.0, of the device whose limits the space must keep.
struct Limits {
  int compute_capability = 0;
  int multiprocessors = 0;
  int max_threads_per_block = 0;
  int max_threads_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  std::int64_t shared_bytes_per_block = 0;  // with opt-in
  std::int64_t shared_bytes_per_multiprocessor = 0;
};

class GpuDevice : public Device {
 public:
  virtual const Limits& limits() const = 0;
  // Of a CUDA device as the driver counts.
  virtual int ordinal() const { return 0; }

  // Compiles what is not cached, in parallel, and loads it; in the order asked for. The first
  // failure wins and names the kernel and the compiler's reason.
  virtual Result<std::vector<std::shared_ptr<const Kernel>>> build(
      std::span<const KernelId> kernels) = 0;
  // Every kernel takes one struct by value: `bytes` bytes at `arguments`. An impossible geometry is
  // an error that names limit and value.
  virtual Status launch(const Kernel& kernel, const LaunchShape& shape, const void* arguments,
                        std::size_t bytes, Stream stream) = 0;

  // How many clusters of this launch the device holds at once; 0: it cannot launch one.
  virtual Result<int> resident_clusters(const Kernel& kernel, const LaunchShape&) const {
    return unsupported("launch of " + kernel.id().expression + ": the device has no clusters");
  }

  // The library's own choice is 0; 1 to gemm_choices() are the best of its heuristics for this
  // shape. Pointers of `shape` are not looked at but for their alignment to 16 bytes.
  virtual int gemm_choices() const = 0;
  virtual Result<std::shared_ptr<const PreparedGemm>> prepare(const Gemm& shape, int choice) = 0;
  // `gemm` has the sizes, transposes and strides that were prepared, and operands aligned as those;
  // anything else is refused, smaller sizes too, since an algorithm is chosen for one shape: what
  // varies from call to call goes to gemm(). alpha and beta are free. `workspace` has the bytes
  // that the product asks for, aligned to 256 bytes.
  virtual Status run(const PreparedGemm& prepared, const Gemm& gemm, void* workspace,
                     Stream stream) = 0;

  // An asynchronous copy between two places of device memory.
  virtual Status copy(void* to, const void* from, std::size_t bytes, Stream stream) = 0;

  // What is created is destroyed by its creator, while the device lives.
  virtual Result<Stream> create_stream() = 0;
  virtual void destroy_stream(Stream stream) = 0;
  virtual Result<Event> create_event() = 0;
  virtual void destroy_event(Event event) = 0;
  virtual Status record(Event event, Stream stream) = 0;
  virtual Status wait(Stream stream, Event event) = 0;
  // Between two recorded events that have happened.
  virtual Result<double> elapsed_us(Event from, Event to) = 0;

  // Between begin and end nothing runs: what is queued on the stream, and on streams that wait for
  // its events, becomes a graph. A capture that fails leaves the stream usable.
  virtual Status begin_capture(Stream stream) = 0;
  virtual Result<Graph> end_capture(Stream stream) = 0;
  virtual Status launch(Graph graph, Stream stream) = 0;
  virtual void destroy_graph(Graph graph) = 0;

  // Runs calls into a library that works on the GPU of the thread's current context (cuDNN).
  virtual Status with_context(const std::function<void()>& body) { return body(), Status(); }

  std::string why_not_memory(const void* memory, std::size_t bytes) const override = 0;
};

// The device as a GPU; only for devices whose info().backend is "cuda" or "simt".
inline GpuDevice& gpu(Device& device) { return static_cast<GpuDevice&>(device); }

}  // namespace rnntune::gpu
