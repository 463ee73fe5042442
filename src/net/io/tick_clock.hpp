// The clock of failure detectors and deadlines: time that may count against others.
#pragma once

#include <algorithm>
#include <utility>

#include "gossip/scheduler.hpp"

namespace gossamer::net {

/// While this process is stopped, or starved of its processor, what the others send lies unread, so
/// one interval between two ticks counts at most twice. Pure: the caller supplies every time.
class TickClock {
 public:
  explicit TickClock(gossip::Time interval) : interval_(interval) {}
  gossip::Time interval() const { return interval_; }
  /// The countable part of the time since the last call, or since time 0.
  gossip::Time advance(gossip::Time now) {
    return std::min(now - std::exchange(last_, now), 2 * interval_);
  }

 private:
  gossip::Time interval_;
  gossip::Time last_{0};
};

}  // namespace gossamer::net
