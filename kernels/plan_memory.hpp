// SPDX-License-Identifier: Apache-2.0
// Lays out the arrays of a plan in its three blocks of memory: sizes first, pointers at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "checked.hpp"
#include "plan.hpp"

namespace rnntune {

// Where an array of floats begins in its block.
struct Place {
  std::int64_t offset = 0;
  float* in(std::byte* block) const { return reinterpret_cast<float*>(block) + offset; }
};

// Arrays start on a cache line. A size that does not fit is remembered: ask ok() before using
// bytes().
class Arena {
 public:
  Place add(Checked floats) {
    const Place place{end_.ok() ? end_.value() : 0};
    end_ = end_ + floats + 15;
    if (end_.ok()) end_ = Checked(end_.value() / 16 * 16);
    return place;
  }
  bool ok() const { return (end_ * 4).ok(); }
  std::size_t bytes() const { return static_cast<std::size_t>(end_.value()) * sizeof(float); }

 private:
  Checked end_{0};
};

struct PlanMemory {
  Arena packed, workspace, reserve;

  PlanSizes sizes() const { return {packed.bytes(), workspace.bytes(), reserve.bytes()}; }

  bool ok() const { return packed.ok() && workspace.ok() && reserve.ok(); }

  // The plan that was laid out here, or why its sizes are none.
  Result<std::unique_ptr<Plan>> check(const Problem& problem, std::unique_ptr<Plan> plan) const {
    if (ok()) return plan;
    return Error{ErrorCode::size_overflow,
                 "size overflow: the buffers of " + to_string(problem) + " do not fit 63 bits"};
  }
};

}  // namespace rnntune
