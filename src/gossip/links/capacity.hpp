// What can carry so many bytes a second and serves chunks in the order in which they come: a link,
// or the up-link or down-link that all of a node's links share.
//
// Chunks are cut through, not stored and forwarded: a chunk goes over up-link, link and down-link
// at the same time, each taking it on as soon as it begins to come in, so that a lone transfer
// takes size over the least bandwidth, once. A capacity is taken for size over its own bandwidth
// only; what comes in more slowly leaves room for others beside it.
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
  /// Takes room for `bytes` whose first byte is here at `arriving.first` and whose last at
  /// `arriving.last`.
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
