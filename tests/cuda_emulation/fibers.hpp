// Stacks of their own for the threads of a block: a thread that waits at a barrier is set aside,
// and the next one runs.
#pragma once

#include <cstddef>

namespace gossamer::emulation {

/// One stack, and the function that runs on it whenever it is switched to. One host thread at a
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
  /// Back to whoever entered. From within the fiber; returns when it is entered again.
  void leave();

 private:
  struct Place;
  static void start();
  Place* place_;
};

}  // namespace gossamer::emulation
