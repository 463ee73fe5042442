// The pauses between attempts to connect.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "gossip/scheduler.hpp"

namespace gossamer::net {

/// Each pause is twice as long as the one before, up to the longest. Pure: it has no clock.
class BackOff {
 public:
  static constexpr gossip::Time kFirst = std::chrono::milliseconds(50);
  static constexpr gossip::Time kLongest = std::chrono::seconds(1);

  explicit BackOff(gossip::Time first = kFirst, gossip::Time longest = kLongest)
      : first_(first), longest_(longest) {}

  /// The pause before the next attempt.
  gossip::Time next() { return std::exchange(pause_, std::min(2 * pause_, longest_)); }
  /// An attempt was successful: the next pause is the first again.
  void reset() { pause_ = first_; }

 private:
  gossip::Time first_, longest_;
  gossip::Time pause_ = first_;
};

}  // namespace gossamer::net
