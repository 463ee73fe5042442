// The events of a simulated world, and its virtual clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "gossip/scheduler.hpp"
#include "simulator/names.hpp"

namespace gossamer::simulator {

/// Events happen in the order of time, and events of one time in the order in which they were
/// scheduled.
class EventQueue {
 public:
  Time now() const { return now_; }
  /// Calls back at `when`, or as soon after as possible.
  void at(Time when, std::function<void()> event) {
    events_.emplace(Scheduler::TimerId{when, scheduled_++}, std::move(event));
  }
  /// When the first event is due; Time::max() if there is none.
  Time next() const { return events_.empty() ? Time::max() : events_.begin()->first.first; }
  /// The clock shows `time`, or a later time that it shows already.
  void advance(Time time) { now_ = std::max(now_, time); }
  /// Removes the first event and calls it back.
  void fire() {
    auto event = events_.extract(events_.begin());
    event.mapped()();
  }

 private:
  Time now_{0};
  std::map<Scheduler::TimerId, std::function<void()>> events_;
  std::uint64_t scheduled_ = 0;
};

}  // namespace gossamer::simulator
