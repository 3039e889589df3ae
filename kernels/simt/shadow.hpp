// SPDX-License-Identifier: Apache-2.0
// What the race checker remembers of memory: for every 8 bytes the accesses that a later one may
// race with, each with the bytes that it touched.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace rnntune::simt {

enum class Access : std::uint8_t { read, write, atomic };
constexpr const char* to_string(Access access) {
  constexpr const char* kNames[] = {"read", "write", "atomic"};
  return kNames[static_cast<std::size_t>(access)];
}

struct Record {
  const void* pc = nullptr;
  std::uint64_t block = 0;
  int thread = 0;  // in its block
  unsigned interval = 0, grid_interval = 0, warp_interval = 0;
  std::uint8_t bytes = 0;  // one bit each
  Access access = Access::read;
};

// Whether something made `later` wait for `earlier`.
bool ordered(const Record& earlier, const Record& later);

class Shadow {
 public:
  static constexpr std::uintptr_t kGranule = 8;

  // Adds an access within one granule; the first earlier one that it races with, or null. The
  // pointer holds until the next call.
  const Record* add(std::uintptr_t granule, const Record& now);
  void forget(std::uintptr_t begin, std::size_t bytes);
  void clear();

 private:
  static constexpr std::uintptr_t kPageGranules = 512;
  using Records = std::vector<Record>;
  using Page = std::array<Records, kPageGranules>;

  Records& records(std::uintptr_t granule);

  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::uintptr_t last_number_ = 0;
  Page* last_page_ = nullptr;
  Record race_;
};

}  // namespace rnntune::simt
