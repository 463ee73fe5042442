#include "fibers.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#include "base/check.hpp"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__)
// Saves the callee-saved registers on the old stack, and restores them from the new one.
extern "C" void gossamer_switch_stacks(void** left, void* entered);
asm(R"(
  .text
  .type gossamer_switch_stacks, @function
gossamer_switch_stacks:
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
  .size gossamer_switch_stacks, . - gossamer_switch_stacks
)");
#endif

namespace gossamer::emulation {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStackBytes = 256 * 1024;
#else
constexpr std::size_t kStackBytes = 64 * 1024;
#endif

/// What a switch of stacks saves of the side that it leaves, and restores of the side that goes on.
struct Side {
#if defined(__x86_64__)
  void* pointer = nullptr;
#else
  ucontext_t context;
#endif
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* fiber = nullptr;
#endif
};

// Blocks run one at a time, so one side at a time has entered fibers.
Side outside;
#if defined(__SANITIZE_ADDRESS__)
Side* left = nullptr;  // the side that ran before the last switch
#endif

void switch_sides(Side& from, Side& to) {
#if defined(__SANITIZE_ADDRESS__)
  left = &from;
  __sanitizer_start_switch_fiber(&from.fake, to.bottom, to.bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  from.fiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.fiber, 0);
#endif
#if defined(__x86_64__)
  gossamer_switch_stacks(&from.pointer, to.pointer);
#else
  ::swapcontext(&from.context, &to.context);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.fake, &left->bottom, &left->bytes);
#endif
}

}  // namespace

struct Fiber::Place {
  void (*body)(void*) = nullptr;
  void* argument = nullptr;
  char* stack = nullptr;  ///< its lowest page is a guard
  std::size_t page = 0;
  Side side;
};

namespace {
void* entering = nullptr;  // the fiber that starts
}  // namespace

void Fiber::start() {
  Place& place = *static_cast<Place*>(entering);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &left->bottom, &left->bytes);
#endif
  place.body(place.argument);
  GOSSAMER_CHECK(false, "a fiber's body does not return");
}

Fiber::Fiber(void (*body)(void*), void* argument) : place_(new Place) {
  place_->body = body;
  place_->argument = argument;
  place_->page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, kStackBytes + place_->page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::mprotect(memory, place_->page, PROT_NONE);
  place_->stack = static_cast<char*>(memory);
  char* top = place_->stack + place_->page + kStackBytes;
#if defined(__x86_64__)
  // As if `start` had been called from nowhere: a frame with no return address above, and six
  // registers below.
  auto* frame = reinterpret_cast<void**>(top) - 2;
  frame[0] = reinterpret_cast<void*>(&Fiber::start);
  frame[1] = nullptr;
  for (int i = 1; i <= 6; ++i) frame[-i] = nullptr;
  place_->side.pointer = frame - 6;
#else
  ucontext_t& context = place_->side.context;
  ::getcontext(&context);
  context.uc_stack.ss_sp = top - kStackBytes;
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  ::makecontext(&context, &Fiber::start, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  place_->side.bottom = top - kStackBytes;
  place_->side.bytes = kStackBytes;
#endif
#if defined(__SANITIZE_THREAD__)
  place_->side.fiber = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(place_->side.fiber);
#endif
  ::munmap(place_->stack, kStackBytes + place_->page);
  delete place_;
}

void Fiber::enter() {
  entering = place_;
  switch_sides(outside, place_->side);
}

void Fiber::leave() { switch_sides(place_->side, outside); }

void Fiber::leave_for(Fiber& next) { switch_sides(place_->side, next.place_->side); }

}  // namespace gossamer::emulation
