// Separate stacks for the threads of a block: a thread that waits at a barrier is suspended, and
// the next one runs.
#pragma once

#include <cstddef>

namespace gossamer::emulation {

/// One stack, and the function that runs on it when it is entered. Thread: one host thread at a
/// time.
class Fiber {
 public:
  /// `body` never returns: it calls `leave` again and again.
  Fiber(void (*body)(void*), void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the fiber until it leaves. Not from within a fiber.
  void enter();
  /// Switches back to the caller of the fiber. Called from within the fiber; returns when the fiber
  /// is entered again.
  void leave();
  /// Switches from within this fiber to `next`, which has left: the caller of this fiber is then
  /// that of `next`. Returns when this fiber is entered again. Half of the switches of leaving and
  /// entering, and the processor predicts where each returns, as both wait in the same functions.
  void leave_for(Fiber& next);

 private:
  struct Place;
  static void start();
  Place* place_;
};

}  // namespace gossamer::emulation
