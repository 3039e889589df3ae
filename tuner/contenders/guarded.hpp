// SPDX-License-Identifier: Apache-2.0
// Device memory with guard bytes on both sides, to catch writes outside.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "rnntune/device.hpp"

namespace rnntune::tuner {

class Guarded {
 public:
  // `shift` bytes past a 64-byte boundary: 0, or 4 for a tensor that is only aligned to its
  // element.
  static Result<Guarded> allocate(std::shared_ptr<Device> device, std::size_t bytes,
                                  std::size_t shift);
  Guarded(Guarded&& other) noexcept;
  Guarded& operator=(Guarded&&) = delete;
  ~Guarded();

  std::byte* data() const { return memory_ + kGuard + shift_; }
  float* floats() const { return reinterpret_cast<float*>(data()); }
  std::size_t bytes() const { return bytes_; }

  // All bytes 0xFF: a NaN that no arithmetic gives, so that what was never written is known.
  Status poison();
  Status guard();  // writes the guard bytes
  Status load(const void* host);
  Status store(void* host) const;

  // Where a write went outside since guard(), such as "4 bytes after its end", or an empty string.
  Result<std::string> breach() const;

 private:
  static constexpr std::size_t kGuard = 1024;  // a cache line would miss a whole vector too far
  Guarded(std::shared_ptr<Device> device, std::byte* memory, std::size_t bytes, std::size_t shift)
      : device_(std::move(device)), memory_(memory), bytes_(bytes), shift_(shift) {}

  std::size_t before() const { return kGuard + shift_; }

  std::shared_ptr<Device> device_;
  std::byte* memory_;
  std::size_t bytes_;
  std::size_t shift_;
};

}  // namespace rnntune::tuner
