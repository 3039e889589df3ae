// SPDX-License-Identifier: Apache-2.0
#include "reference/cudnn/session.hpp"

#include <algorithm>

namespace rnntune::reference::cudnn {
namespace {

// cuDNN 9 numbers its statuses in thousands, with the details of one below it.
ErrorCode code_of(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_ALLOC_FAILED) return ErrorCode::out_of_memory;
  const int kind = int(status) / 1000;
  return kind == int(CUDNN_STATUS_NOT_SUPPORTED) / 1000 ? ErrorCode::unsupported
                                                        : ErrorCode::internal;
}

std::string last_error(const Cudnn& cudnn) {
  char text[512] = {};
  cudnn.cudnnGetLastErrorString(text, sizeof text);
  text[sizeof text - 1] = 0;
  std::string line = text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

Result<SessionPtr> Session::open(const Cudnn& cudnn, std::shared_ptr<gpu::GpuDevice> device) {
  if (Status status = check_version(cudnn); !status.ok()) return status.error();
  const std::shared_ptr<Session> session(new Session(cudnn, std::move(device)));
  Result<Stream> stream = session->device().create_stream();
  if (!stream.ok()) return stream.error();
  session->stream_ = *stream;
  Status status = RNNTUNE_CUDNN_CALL(*session, cudnnCreate, &session->handle_);
  if (!status.ok()) {
    session->handle_ = nullptr;
    return status.error();
  }
  status = RNNTUNE_CUDNN_CALL(*session, cudnnSetStream, session->handle_,
                              static_cast<cudaStream_t>(session->stream_));
  if (!status.ok()) return status.error();
  return SessionPtr(session);
}

Session::~Session() {
  if (handle_ != nullptr) (void)RNNTUNE_CUDNN_CALL(*this, cudnnDestroy, handle_);
  if (stream_ != nullptr) device_->destroy_stream(stream_);
}

Status Session::run(const char* name, const std::function<cudnnStatus_t()>& body) const {
  cudnnStatus_t result = CUDNN_STATUS_SUCCESS;
  std::string detail;
  Status status = device_->with_context([&] {
    result = body();
    if (result != CUDNN_STATUS_SUCCESS) detail = last_error(cudnn_);
  });
  if (!status.ok())
    return Error{status.error().code, std::string(name) + ": " + status.error().message};
  if (result == CUDNN_STATUS_SUCCESS) return {};
  return Error{code_of(result), std::string(name) + ": " + cudnn_.cudnnGetErrorString(result) +
                                    (detail.empty() ? "" : " (" + detail + ")")};
}

Result<Buffer> Buffer::allocate(SessionPtr session, std::size_t bytes) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  Result<void*> memory = session->device().allocate(bytes);
  if (!memory.ok()) return memory.error();
  buffer.session_ = std::move(session);
  buffer.data_ = *memory;
  buffer.bytes_ = bytes;
  return buffer;
}

Buffer::~Buffer() {
  if (data_ != nullptr) session_->device().release(data_);
}

}  // namespace rnntune::reference::cudnn
