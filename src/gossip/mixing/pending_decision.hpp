// A decision that a coroutine waits for.
#pragma once

#include <coroutine>
#include <functional>
#include <utility>

#include "gossip/scheduler.hpp"

namespace gossamer::gossip {

/// co_await decision.made(): until `is_made`. Thread: the scheduler's. One waiter.
class PendingDecision {
 public:
  PendingDecision(Scheduler& scheduler, std::function<bool()> is_made)
      : scheduler_(scheduler), is_made_(std::move(is_made)) {}
  PendingDecision(const PendingDecision&) = delete;
  PendingDecision& operator=(const PendingDecision&) = delete;

  /// Something that the decision depends on has changed.
  void update() {
    if (waiter_ && is_made_()) scheduler_.post(std::exchange(waiter_, {}));
  }

  // An awaiter of its own: GCC 12 copies an awaited object that a function returns by reference.
  auto made() {
    struct Awaiter {
      PendingDecision& decision;
      bool await_ready() const { return decision.is_made_(); }
      void await_suspend(std::coroutine_handle<> waiter) { decision.waiter_ = waiter; }
      void await_resume() const {}
    };
    return Awaiter{*this};
  }

 private:
  Scheduler& scheduler_;
  std::function<bool()> is_made_;
  std::coroutine_handle<> waiter_;
};

}  // namespace gossamer::gossip
