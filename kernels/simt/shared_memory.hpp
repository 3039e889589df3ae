// SPDX-License-Identifier: Apache-2.0
// The shared memory of a block: one heap object per declaration, filled with 0xCD, of the exact
// size under the address sanitizer and between guard bytes without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rnntune::simt {

class SharedMemory {
 public:
  // A block begins: what the one before declared is kept for reuse, and counts no more. The limits
  // are the caller's to check, by the bytes of the declarations that are live.
  void begin();
  void* find(const void* key) const;  // null when not declared yet
  // Null when there is no memory.
  void* add(const void* key, const char* name, std::size_t bytes);
  bool holds(const void* memory, std::size_t bytes) const;
  std::size_t static_bytes() const { return static_bytes_; }

  // Empty when no guard was touched.
  std::string overrun() const;

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  struct Object {
    const void* key;
    const char* name;
    std::size_t bytes;
    std::unique_ptr<std::byte, Free> memory;
    bool live;
  };
  std::vector<Object> objects_;
  std::size_t static_bytes_ = 0;
};

// The key of the dynamic shared memory.
extern const char kDynamicShared;

}  // namespace rnntune::simt
