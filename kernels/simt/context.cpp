// SPDX-License-Identifier: Apache-2.0
#include "simt/context.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#include "simt/sanitizers.hpp"

#if defined(RNNTUNE_SIMT_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(RNNTUNE_SIMT_OWN_SWITCH)
// rnntune_simt_switch(void** save, void* to): saves what a call must preserve on the old stack and
// takes it from the new one.
asm(R"(
.text
.p2align 4
.globl rnntune_simt_switch
.hidden rnntune_simt_switch
.type rnntune_simt_switch,@function
rnntune_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size rnntune_simt_switch,.-rnntune_simt_switch
)");
extern "C" void rnntune_simt_switch(void** save, void* to);
#endif

namespace rnntune::simt {
namespace {

#if defined(RNNTUNE_SIMT_ADDRESS_SANITIZER)
constexpr std::size_t kStackBytes = 256 * 1024;
#else
constexpr std::size_t kStackBytes = 64 * 1024;
#endif

// The flow that the running one came from; its stack is known only once it has been left.
[[maybe_unused]] thread_local Context* came_from = nullptr;

void finish_switch([[maybe_unused]] void* fake_stack) {
#if defined(RNNTUNE_SIMT_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(fake_stack, &came_from->stack_low, &came_from->stack_bytes);
#endif
}

}  // namespace

Fiber* create_fiber() {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, kStackBytes + page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* fiber = new (std::nothrow) Fiber;
  if (!fiber || mprotect(memory, page, PROT_NONE) != 0) {
    munmap(memory, kStackBytes + page);
    delete fiber;
    return nullptr;
  }
  fiber->low = static_cast<char*>(memory) + page;
  fiber->bytes = kStackBytes;
  return fiber;
}

void destroy_fiber(Fiber* fiber) {
#if defined(RNNTUNE_SIMT_ADDRESS_SANITIZER)
  __asan_unpoison_memory_region(fiber->low, fiber->bytes);
#endif
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  munmap(fiber->low - page, fiber->bytes + page);
  delete fiber;
}

void prepare(Fiber& fiber, void (*entry)()) {
  Context& context = fiber.context;
  context.fake_stack = nullptr;
  context.stack_low = fiber.low;
  context.stack_bytes = fiber.bytes;
#if defined(RNNTUNE_SIMT_ADDRESS_SANITIZER)
  // The last user may have been abandoned with marks of its frames on the stack.
  __asan_unpoison_memory_region(fiber.low, fiber.bytes);
#endif
#if defined(RNNTUNE_SIMT_OWN_SWITCH)
  // What the switch pops: six registers and the address it returns to. At the entry of a function
  // the stack pointer is 8 above a multiple of 16, with the (here: no) return address on top.
  void** top = reinterpret_cast<void**>(fiber.low + fiber.bytes);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  context.stack_pointer = top;
#else
  getcontext(&context.registers);
  context.registers.uc_stack.ss_sp = fiber.low;
  context.registers.uc_stack.ss_size = fiber.bytes;
  context.registers.uc_link = nullptr;
  makecontext(&context.registers, entry, 0);
#endif
}

void entered() { finish_switch(nullptr); }

void switch_context(Context& from, Context& to, [[maybe_unused]] bool from_ends) {
#if defined(RNNTUNE_SIMT_ADDRESS_SANITIZER)
  came_from = &from;
  __sanitizer_start_switch_fiber(from_ends ? nullptr : &from.fake_stack, to.stack_low,
                                 to.stack_bytes);
#endif
#if defined(RNNTUNE_SIMT_OWN_SWITCH)
  rnntune_simt_switch(&from.stack_pointer, to.stack_pointer);
#else
  swapcontext(&from.registers, &to.registers);
#endif
  finish_switch(from.fake_stack);
}

}  // namespace rnntune::simt
