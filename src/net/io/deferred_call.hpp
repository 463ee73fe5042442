// A call that is made later, from the scheduler's loop, and at most once at a time.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "gossip/scheduler.hpp"

namespace gossamer::net {

/// Thread: the scheduler's.
class DeferredCall {
 public:
  DeferredCall(gossip::Scheduler& scheduler, std::function<void()> call)
      : scheduler_(scheduler), call_(std::move(call)) {}
  ~DeferredCall() { cancel(); }
  DeferredCall(const DeferredCall&) = delete;
  DeferredCall& operator=(const DeferredCall&) = delete;

  /// Calls after `wait`, unless a call is pending.
  void call_after(gossip::Time wait) {
    if (timer_) return;
    timer_ = scheduler_.after(wait, [this] {
      timer_.reset();
      call_();
    });
  }
  void cancel() {
    if (timer_) scheduler_.cancel(*timer_);
    timer_.reset();
  }

 private:
  gossip::Scheduler& scheduler_;
  std::function<void()> call_;
  std::optional<gossip::Scheduler::TimerId> timer_;
};

}  // namespace gossamer::net
