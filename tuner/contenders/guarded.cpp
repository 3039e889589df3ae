// SPDX-License-Identifier: Apache-2.0
#include "tuner/contenders/guarded.hpp"

#include <vector>

namespace rnntune::tuner {
namespace {

constexpr unsigned char kGuardByte = 0xA5;

}  // namespace

Result<Guarded> Guarded::allocate(std::shared_ptr<Device> device, std::size_t bytes,
                                  std::size_t shift) {
  const Result<void*> memory = device->allocate(bytes + shift + 2 * kGuard);
  if (!memory.ok()) return memory.error();
  return Guarded(std::move(device), static_cast<std::byte*>(*memory), bytes, shift);
}

Guarded::Guarded(Guarded&& other) noexcept
    : device_(std::move(other.device_)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      shift_(other.shift_) {}

Guarded::~Guarded() {
  if (memory_ != nullptr) device_->release(memory_);
}

Status Guarded::poison() { return device_->fill(data(), 0xFF, bytes_); }

Status Guarded::guard() {
  if (Status status = device_->fill(memory_, kGuardByte, before()); !status.ok()) return status;
  return device_->fill(data() + bytes_, kGuardByte, kGuard);
}

Status Guarded::load(const void* host) { return device_->to_device(data(), host, bytes_); }

Status Guarded::store(void* host) const { return device_->to_host(host, data(), bytes_); }

Result<std::string> Guarded::breach() const {
  std::vector<unsigned char> bytes(before());
  Status status = device_->to_host(bytes.data(), memory_, bytes.size());
  if (!status.ok()) return status.error();
  for (std::size_t i = bytes.size(); i-- > 0;) {
    if (bytes[i] != kGuardByte) return std::to_string(bytes.size() - i) + " bytes before its start";
  }
  bytes.resize(kGuard);
  status = device_->to_host(bytes.data(), data() + bytes_, bytes.size());
  if (!status.ok()) return status.error();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != kGuardByte) return std::to_string(i) + " bytes after its end";
  }
  return std::string();
}

}  // namespace rnntune::tuner
