// A capacity in bytes per second that serves chunks in the order of arrival: a link's own, or the
// up-link or down-link that all links of a node share.
//
// Chunks are cut through, not stored and forwarded: a chunk goes over up-link, link and down-link
// at the same time, each forwarding it as soon as its first byte arrives, so that a lone transfer
// takes its size divided by the smallest bandwidth, once. A capacity is occupied for the size
// divided by its own bandwidth only; a chunk that arrives more slowly leaves room for others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gossip/scheduler.hpp"

namespace gossamer::gossip {

class Capacity {
 public:
  /// 0: without limit.
  explicit Capacity(double bytes_per_second = 0) : bytes_per_second_(bytes_per_second) {}

  /// When the first and the last byte of a transfer pass.
  struct Passage {
    Time first, last;
  };
  /// Reserves the capacity for `bytes` whose first byte arrives at `arriving.first` and whose last
  /// byte at `arriving.last`.
  Passage pass(Passage arriving, std::uint64_t bytes) {
    if (bytes_per_second_ == 0) return arriving;
    const Time begin = std::max(arriving.first, free_);
    free_ = begin + Time{std::llround(static_cast<double>(bytes) / bytes_per_second_ * 1e9)};
    return {begin, std::max(arriving.last, free_)};
  }

 private:
  double bytes_per_second_;
  Time free_{0};
};

}  // namespace gossamer::gossip
