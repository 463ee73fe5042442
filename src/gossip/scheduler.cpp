#include "gossip/scheduler.hpp"

namespace gossamer::gossip {

Scheduler::TimerId Scheduler::at(Time when, Callback callback) {
  const TimerId id{when, timers_made_++};
  timers_.emplace(id, std::move(callback));
  return id;
}

bool Scheduler::turn() {
  if (ready_.empty()) return idle_work_ != nullptr && idle_work_->run_pending(next_timer());
  // Two vectors in turn are a FIFO queue: what is posted meanwhile comes after all that was posted
  // before.
  running_.swap(ready_);
  for (std::size_t i = 0; i < running_.size(); ++i) {
    running_[i].resume();
    if (stopped_ || failure_) {
      ready_.insert(ready_.begin(), running_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                    running_.end());
      break;
    }
  }
  running_.clear();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return true;
}

void Scheduler::drain() {
  while (!stopped_ && turn()) {
  }
}

bool Scheduler::fire_due(Time now) {
  if (timers_.empty() || timers_.begin()->first.first > now) return false;
  auto timer = timers_.extract(timers_.begin());
  timer.mapped()();
  return true;
}

void VirtualScheduler::run() {
  for (;;) {
    drain();
    if (stopped() || next_timer() == Time::max()) return;
    now_ = std::max(now_, next_timer());
    fire_due(now_);
  }
}

}  // namespace gossamer::gossip
