// A coroutine's wait until another part has changed something.
#pragma once

#include <coroutine>
#include <utility>

#include "gossip/scheduler.hpp"

namespace gossamer::gossip {

/// One coroutine at a time. Thread: the scheduler's.
class Wakeup {
 public:
  explicit Wakeup(Scheduler& scheduler) : scheduler_(scheduler) {}

  /// co_await wakeup.next(): until notify().
  auto next() {
    struct Awaiter {
      Wakeup& wakeup;
      bool await_ready() const { return false; }
      void await_suspend(std::coroutine_handle<> waiter) { wakeup.waiter_ = waiter; }
      void await_resume() const {}
    };
    return Awaiter{*this};
  }
  void notify() {
    if (waiter_) scheduler_.post(std::exchange(waiter_, {}));
  }

 private:
  Scheduler& scheduler_;
  std::coroutine_handle<> waiter_;
};

}  // namespace gossamer::gossip
