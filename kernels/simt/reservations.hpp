// SPDX-License-Identifier: Apache-2.0
// Address space that reads as zeros and takes real memory where it is written only.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "rnntune/result.hpp"

namespace rnntune::simt {

class Reservations {
 public:
  Reservations() = default;
  Reservations(const Reservations&) = delete;
  ~Reservations() {
    while (!bytes_.empty()) release(bytes_.begin()->first);
  }

  Result<void*> reserve(std::size_t bytes) {
    bytes = std::max<std::size_t>(bytes, 1);
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      return Error{ErrorCode::out_of_memory,
                   "no address space for " + std::to_string(bytes) + " bytes"};
    }
    bytes_[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
    return memory;
  }
  void release(std::uintptr_t address) {
    const auto found = bytes_.find(address);
    if (found == bytes_.end()) return;
    munmap(reinterpret_cast<void*>(address), found->second);
    bytes_.erase(found);
  }
  bool hold(std::uintptr_t address, std::size_t bytes) const {
    auto found = bytes_.upper_bound(address);
    if (found == bytes_.begin()) return false;
    --found;
    const std::uintptr_t offset = address - found->first;
    return offset < found->second && found->second - offset >= bytes;
  }

 private:
  std::map<std::uintptr_t, std::size_t> bytes_;  // by first byte
};

}  // namespace rnntune::simt
