// SPDX-License-Identifier: Apache-2.0
// A cuDNN handle on a device, how calls of it fail, and what a run owns: descriptors and memory.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "device/cudnn.hpp"
#include "device/gpu.hpp"

// Calls session.cudnn().name(...); a failure names it.
#define RNNTUNE_CUDNN_CALL(session, name, ...) \
  (session).run(#name, [&] { return (session).cudnn().name(__VA_ARGS__); })

namespace rnntune::reference::cudnn {

// One handle and one stream: for one thread at a time.
class Session {
 public:
  static Result<std::shared_ptr<const Session>> open(const Cudnn& cudnn,
                                                     std::shared_ptr<gpu::GpuDevice> device);
  Session(const Session&) = delete;
  ~Session();

  const Cudnn& cudnn() const { return cudnn_; }
  gpu::GpuDevice& device() const { return *device_; }
  cudnnHandle_t handle() const { return handle_; }
  Stream stream() const { return stream_; }

  // "cudnnRNNForward: CUDNN_STATUS_NOT_SUPPORTED (cuDNN's own words)". Not supported and out of
  // memory keep their codes.
  Status run(const char* name, const std::function<cudnnStatus_t()>& body) const;

 private:
  Session(const Cudnn& cudnn, std::shared_ptr<gpu::GpuDevice> device)
      : cudnn_(cudnn), device_(std::move(device)) {}

  const Cudnn cudnn_;
  const std::shared_ptr<gpu::GpuDevice> device_;
  cudnnHandle_t handle_ = nullptr;
  Stream stream_ = nullptr;
};

using SessionPtr = std::shared_ptr<const Session>;

// A descriptor that is destroyed with its owner, which keeps the session.
template <class T>
struct Destroy {
  const Session* session = nullptr;
  cudnnStatus_t (*destroy)(T) = nullptr;
  void operator()(T descriptor) const {
    (void)session->run("", [&] { return destroy(descriptor); });  // nobody to tell
  }
};
template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Destroy<T>>;

template <class T>
Status create(const Session& session, const char* name, cudnnStatus_t (*make)(T*),
              cudnnStatus_t (*destroy)(T), Owned<T>& owned) {
  T descriptor = nullptr;
  Status status = session.run(name, [&] { return make(&descriptor); });
  if (status.ok()) owned = Owned<T>(descriptor, {&session, destroy});
  return status;
}

// Device memory of a run; null and no memory for no bytes.
class Buffer {
 public:
  Buffer() = default;
  static Result<Buffer> allocate(SessionPtr session, std::size_t bytes);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept { return swap(other), *this; }
  ~Buffer();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(Buffer& other) {
    std::swap(session_, other.session_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  SessionPtr session_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rnntune::reference::cudnn
