// SPDX-License-Identifier: Apache-2.0
#include "simt/memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "simt/sanitizers.hpp"

namespace rnntune::simt {
namespace {

#if defined(RNNTUNE_SIMT_ADDRESS_SANITIZER)
constexpr std::size_t kGuardBytes = 0;
#else
constexpr std::size_t kGuardBytes = 256;
#endif
constexpr std::align_val_t kAlignment{256};
constexpr int kFresh = 0xFF;  // NaN as f64, f32, f16 and bf16
constexpr std::byte kGuard{0xA5};

std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

// The first changed byte of a guard, which is mended; null: none.
const std::byte* first_changed(std::byte* begin) {
  const std::byte* const changed =
      std::find_if(begin, begin + kGuardBytes, [](std::byte byte) { return byte != kGuard; });
  if (changed == begin + kGuardBytes) return nullptr;
  std::fill_n(begin, kGuardBytes, kGuard);
  return changed;
}

}  // namespace

Memory::~Memory() {
  for (const auto& [address, bytes] : allocations_) {
    ::operator delete(at(address) - kGuardBytes, kAlignment);
  }
}

Result<void*> Memory::allocate(std::size_t bytes) {
  const Error refused{ErrorCode::out_of_memory,
                      "allocate: expected at most " + std::to_string(limit_bytes_ - used_bytes_) +
                          " bytes, what is free, got " + std::to_string(bytes)};
  if (bytes > static_cast<std::size_t>(limit_bytes_ - used_bytes_)) return refused;
  void* const memory = ::operator new(bytes + 2 * kGuardBytes, kAlignment, std::nothrow);
  if (memory == nullptr) return refused;
  std::byte* const begin = static_cast<std::byte*>(memory) + kGuardBytes;
  std::fill_n(begin - kGuardBytes, kGuardBytes, kGuard);
  std::memset(begin, kFresh, bytes);
  std::fill_n(begin + bytes, kGuardBytes, kGuard);
  allocations_[reinterpret_cast<std::uintptr_t>(begin)] = bytes;
  used_bytes_ += static_cast<std::int64_t>(bytes);
  return begin;
}

bool Memory::release(void* memory) {
  const auto found = allocations_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == allocations_.end()) return false;
  used_bytes_ -= static_cast<std::int64_t>(found->second);
  allocations_.erase(found);
  ::operator delete(static_cast<std::byte*>(memory) - kGuardBytes, kAlignment);
  return true;
}

std::string Memory::why_not(const void* memory, std::size_t bytes) const {
  if (bytes == 0) return {};
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  auto found = allocations_.upper_bound(address);
  if (found == allocations_.begin()) return "is not memory of the device";
  --found;
  const std::uintptr_t offset = address - found->first;
  if (offset >= std::max<std::size_t>(found->second, 1)) return "is not memory of the device";
  const std::size_t left = found->second - offset;
  if (left >= bytes) return {};
  return "ends after " + std::to_string(left) + " bytes, expected " + std::to_string(bytes);
}

std::string Memory::overrun() {
  if (kGuardBytes == 0) return {};
  for (const auto& [address, bytes] : allocations_) {
    std::byte* const begin = at(address);
    const std::byte* changed = first_changed(begin - kGuardBytes);
    if (changed == nullptr) changed = first_changed(begin + bytes);
    if (changed == nullptr) continue;
    return "overrun of device memory of " + std::to_string(bytes) + " bytes: byte " +
           std::to_string(changed - begin) + " was written";
  }
  return {};
}

}  // namespace rnntune::simt
