// SPDX-License-Identifier: Apache-2.0
// Fibers: a stack of its own and a place to go on from. x86-64 has a switch of twelve instructions;
// elsewhere ucontext serves, a hundred times slower, since it saves the signal mask by system
// calls.
#pragma once

#include <cstddef>

#if defined(__x86_64__) && !defined(RNNTUNE_SIMT_UCONTEXT)
#define RNNTUNE_SIMT_OWN_SWITCH 1
#else
#include <ucontext.h>
#endif

namespace rnntune::simt {

// Where a flow of control stopped, and the stack it is on (for the address sanitizer).
struct Context {
#if defined(RNNTUNE_SIMT_OWN_SWITCH)
  void* stack_pointer = nullptr;
#else
  ucontext_t registers;
#endif
  void* fake_stack = nullptr;
  const void* stack_low = nullptr;
  std::size_t stack_bytes = 0;
};

struct Fiber {
  Context context;
  char* low = nullptr;  // of its stack; the page below it faults
  std::size_t bytes = 0;

  bool holds(const void* address) const {
    const char* at = static_cast<const char*>(address);
    return at >= low && at < low + bytes;
  }
};

// A new fiber; null when there is no memory.
Fiber* create_fiber();
void destroy_fiber(Fiber* fiber);

// The next switch to the fiber calls `entry`, which must call entered() first and never return.
void prepare(Fiber& fiber, void (*entry)());
void entered();

// Goes on at `to`; returns when something switches to `from`. A flow that ends never comes back.
void switch_context(Context& from, Context& to, bool from_ends = false);

}  // namespace rnntune::simt
