// SPDX-License-Identifier: Apache-2.0
// Sizes that never wrap: arithmetic on non-negative 63-bit integers that remembers an overflow.
#pragma once

#include <cstdint>

namespace rnntune {

class Checked {
 public:
  Checked(std::int64_t value) : value_(value), ok_(value >= 0) {}
  bool ok() const { return ok_; }
  std::int64_t value() const { return value_; }

  friend Checked operator*(Checked a, Checked b) {
    Checked out(0);
    out.ok_ = !__builtin_mul_overflow(a.value_, b.value_, &out.value_) && a.ok_ && b.ok_;
    return out;
  }
  friend Checked operator+(Checked a, Checked b) {
    Checked out(0);
    out.ok_ = !__builtin_add_overflow(a.value_, b.value_, &out.value_) && a.ok_ && b.ok_;
    return out;
  }

 private:
  std::int64_t value_;
  bool ok_;
};

}  // namespace rnntune
