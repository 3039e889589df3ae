// SPDX-License-Identifier: Apache-2.0
// The memory of the emulated device: each allocation is a heap object of its own, filled with NaN.
// Under the address sanitizer it has the exact size, so that a kernel that leaves it is stopped at
// that access; else it stands between guards, which are looked at after each launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "rnntune/result.hpp"

namespace rnntune::simt {

class Memory {
 public:
  explicit Memory(std::int64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  Memory(const Memory&) = delete;
  ~Memory();

  Result<void*> allocate(std::size_t bytes);  // aligned to 256 bytes, as on a GPU
  bool release(void* memory);                 // false: it is no allocation
  // Why these bytes are not all within one allocation; empty when they are.
  std::string why_not(const void* memory, std::size_t bytes) const;
  // The first byte outside an allocation that was written since the last call; empty: none.
  std::string overrun();

 private:
  const std::int64_t limit_bytes_;
  std::int64_t used_bytes_ = 0;
  std::map<std::uintptr_t, std::size_t> allocations_;  // by address: bytes
};

}  // namespace rnntune::simt
