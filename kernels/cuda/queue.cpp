// SPDX-License-Identifier: Apache-2.0
#include "cuda/queue.hpp"

#include <algorithm>
#include <cstdint>

namespace rnntune::cuda {
namespace {

bool same_shape(const Gemm& a, const Gemm& b) {
  return a.transpose_a == b.transpose_a && a.transpose_b == b.transpose_b && a.m == b.m &&
         a.n == b.n && a.k == b.k && a.lda == b.lda && a.ldb == b.ldb && a.ldc == b.ldc;
}

bool aligned(const float* operand) { return reinterpret_cast<std::uintptr_t>(operand) % 16 == 0; }

float* align_up(float* memory) {
  const auto beyond = reinterpret_cast<std::uintptr_t>(memory) % kGemmWorkspaceAlignment;
  return beyond == 0 ? memory : memory + (kGemmWorkspaceAlignment - beyond) / sizeof(float);
}

}  // namespace

Products::Products(std::shared_ptr<gpu::GpuDevice> device, int step_choice, int sequence_choice)
    : device_(std::move(device)),
      choices_{std::min(step_choice, device_->gemm_choices()),
               std::min(sequence_choice, device_->gemm_choices())} {}

const Products::Prepared* Products::find(Role role, const Gemm& gemm) const {
  for (const Prepared& prepared : prepared_) {
    if (prepared.role == role && same_shape(prepared.shape, gemm)) return &prepared;
  }
  return nullptr;
}

Result<std::shared_ptr<const gpu::PreparedGemm>> Products::prepare(int choice, const Gemm& shape) {
  auto prepared = device_->prepare(shape, choice);
  const bool absent = !prepared.ok() && prepared.error().code == ErrorCode::unsupported;
  return absent && choice > 0 ? device_->prepare(shape, 0) : prepared;
}

Status Products::prepare(Role role, const Gemm& gemm) {
  if (find(role, gemm) != nullptr) return {};
  Gemm shape = gemm;
  shape.a = shape.b = shape.c = nullptr;  // aligned to anything
  const int choice = choices_[static_cast<int>(role)];
  const auto with_vectors = prepare(choice, shape);
  if (!with_vectors.ok()) return with_vectors.error();
  // Any address that is a multiple of a float's size and no more; only its alignment is looked at.
  const auto* const element = reinterpret_cast<const float*>(std::uintptr_t{alignof(float)});
  Gemm unaligned = shape;
  unaligned.a = unaligned.b = element;
  unaligned.c = const_cast<float*>(element);
  const auto without = prepare(choice, unaligned);
  if (!without.ok()) return without.error();
  workspace_bytes_ = std::max(
      {workspace_bytes_, (*with_vectors)->workspace_bytes(), (*without)->workspace_bytes()});
  prepared_.push_back({role, shape, *with_vectors, *without});
  return {};
}

Status Products::run(Role role, const Gemm& gemm, void* workspace, Stream stream) const {
  const Prepared* const prepared = find(role, gemm);
  if (prepared == nullptr) return device_->gemm(gemm, stream);
  const bool vectors = aligned(gemm.a) && aligned(gemm.b) && aligned(gemm.c);
  return device_->run(vectors ? *prepared->aligned : *prepared->any, gemm, workspace, stream);
}

Queue::Queue(gpu::GpuDevice& device, const Products& products, Stream stream, float* workspace,
             Status& status)
    : device_(device),
      products_(products),
      rehearsed_(nullptr),
      stream_(stream),
      workspace_(align_up(workspace)),
      status_(status) {}

Queue::Queue(gpu::GpuDevice& device, Products& rehearsed, Status& status)
    : device_(device),
      products_(rehearsed),
      rehearsed_(&rehearsed),
      stream_(nullptr),
      workspace_(nullptr),
      status_(status) {}

void Queue::multiply(Role role, const Gemm& gemm) {
  if (!status_.ok()) return;
  status_ = rehearses() ? rehearsed_->prepare(role, gemm)
                        : products_.run(role, gemm, workspace_, stream_);
}

void Queue::copy(float* to, const float* from, std::int64_t count) {
  const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
  call([&] { return device_.copy(to, from, bytes, stream_); });
}

void Queue::zero(float* to, std::int64_t count) {
  const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
  call([&] { return device_.fill(to, 0, bytes, stream_); });
}

Handles::~Handles() {
  for (const Stream stream : streams_) device_->destroy_stream(stream);
  for (const gpu::Event event : events_) device_->destroy_event(event);
}

Status Handles::create(std::size_t streams, std::size_t events) {
  while (streams_.size() < streams) {
    const Result<Stream> stream = device_->create_stream();
    if (!stream.ok()) return stream.error();
    streams_.push_back(*stream);
  }
  while (events_.size() < events) {
    const Result<gpu::Event> event = device_->create_event();
    if (!event.ok()) return event.error();
    events_.push_back(*event);
  }
  return {};
}

}  // namespace rnntune::cuda
