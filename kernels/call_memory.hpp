// SPDX-License-Identifier: Apache-2.0
// Whether the memory of a call is the device's. A GPU that touches other memory is lost to the
// process, so that the device is asked before anything is queued. To ask costs microseconds: what
// the last call of the same kind passed in the same place is not asked for again, and memory that
// was released in between is not found out.
#pragma once

#include <cassert>
#include <cstddef>
#include <string>
#include <vector>

#include "rnntune/device.hpp"

namespace rnntune {

class CallMemory {
 public:
  // A call passes at most so many arrays: to note them allocates nothing later.
  void resize(std::size_t arrays) { known_.resize(arrays); }

  // The arrays of one call come in one order, absent ones too.
  void begin() { next_ = 0; }

  // Why `bytes` bytes at `data` must not be passed; empty when they may, and where data is null.
  std::string why_not(const Device& device, const void* data, std::size_t bytes) {
    assert(next_ < known_.size());
    Range& known = known_[next_++];
    if (data == nullptr || (known.data == data && known.bytes >= bytes)) return {};
    std::string why = device.why_not_memory(data, bytes);
    if (why.empty()) known = {data, bytes};
    return why;
  }

 private:
  struct Range {
    const void* data = nullptr;
    std::size_t bytes = 0;
  };
  std::vector<Range> known_;
  std::size_t next_ = 0;
};

}  // namespace rnntune
