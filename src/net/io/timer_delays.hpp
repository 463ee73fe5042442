// How late timers fire: what a process shows if its loop is kept busy, or its machine.
#pragma once

#include <array>
#include <cstdint>

#include "gossip/scheduler.hpp"

namespace gossamer::net {

/// Timers that have fired, by their delay: the time from when they were due.
struct TimerDelays {
  /// The largest delay of each class, in seconds; the last class has none.
  static constexpr std::array kBounds{0.001, 0.01, 0.05, 0.25, 1.0};

  std::array<std::uint64_t, kBounds.size() + 1> counts = {};  ///< timers by class
  double seconds = 0;                                         ///< the sum of all delays

  void add(gossip::Time delay) {
    const double late = gossip::seconds(delay);
    std::size_t place = 0;
    while (place < kBounds.size() && late > kBounds[place]) ++place;
    ++counts[place];
    seconds += late;
  }
};

}  // namespace gossamer::net
