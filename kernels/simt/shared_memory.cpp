// SPDX-License-Identifier: Apache-2.0
#include "simt/shared_memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "simt/race.hpp"
#include "simt/sanitizers.hpp"

namespace rnntune::simt {
namespace {

#if defined(RNNTUNE_SIMT_ADDRESS_SANITIZER)
constexpr std::size_t kGuardBytes = 0;
#else
constexpr std::size_t kGuardBytes = 128;
#endif
constexpr std::align_val_t kAlignment{128};  // what bulk copies of a GPU want
constexpr int kFresh = 0xCD, kGuard = 0xA5;

// Distance from the object of the first changed byte of a guard, or `end`.
const std::byte* first_changed(const std::byte* begin, const std::byte* end) {
  return std::find_if(begin, end, [](std::byte byte) { return byte != std::byte{kGuard}; });
}

}  // namespace

const char kDynamicShared = 0;

void SharedMemory::Free::operator()(std::byte* memory) const {
  ::operator delete(memory, kAlignment);
}

void SharedMemory::begin() {
  for (Object& object : objects_) object.live = false;
  static_bytes_ = 0;
}

void* SharedMemory::find(const void* key) const {
  for (const Object& object : objects_) {
    if (object.key == key && object.live) return object.memory.get() + kGuardBytes;
  }
  return nullptr;
}

void* SharedMemory::add(const void* key, const char* name, std::size_t bytes) {
  auto found = std::find_if(objects_.begin(), objects_.end(),
                            [key](const Object& object) { return object.key == key; });
  if (found == objects_.end()) {
    void* memory = ::operator new(bytes + 2 * kGuardBytes, kAlignment, std::nothrow);
    if (!memory) return nullptr;
    objects_.push_back({key, name, bytes, {}, false});
    found = objects_.end() - 1;
    found->memory.reset(static_cast<std::byte*>(memory));
    std::memset(found->memory.get(), kGuard, kGuardBytes);
    std::memset(found->memory.get() + kGuardBytes + bytes, kGuard, kGuardBytes);
  }
  found->live = true;
  std::byte* object = found->memory.get() + kGuardBytes;
  std::memset(object, kFresh, bytes);
  if (race_hooks.forget) race_hooks.forget(object, bytes);
  if (key != &kDynamicShared) static_bytes_ += bytes;
  return object;
}

bool SharedMemory::holds(const void* memory, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return std::any_of(objects_.begin(), objects_.end(), [=](const Object& object) {
    const auto begin = reinterpret_cast<std::uintptr_t>(object.memory.get()) + kGuardBytes;
    return object.live && address >= begin && address + bytes <= begin + object.bytes;
  });
}

std::string SharedMemory::overrun() const {
  for (const Object& object : objects_) {
    if (!object.live) continue;
    const std::byte* begin = object.memory.get() + kGuardBytes;
    const std::byte* end = begin + object.bytes;
    const std::byte* changed = first_changed(begin - kGuardBytes, begin);
    if (changed == begin) {
      changed = first_changed(end, end + kGuardBytes);
      if (changed == end + kGuardBytes) continue;
    }
    return std::string("overrun of shared memory \"") + object.name + "\" of " +
           std::to_string(object.bytes) + " bytes: byte " + std::to_string(changed - begin) +
           " was written";
  }
  return {};
}

}  // namespace rnntune::simt
