// Sharing under policy sync: a round's share takes exactly that round's row of every in-neighbour
// that is present.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gossip/mixing/mixer.hpp"

namespace gossamer::gossip {

/// Memory: one row for each in-neighbour and channel. Thread: the scheduler's.
class LockstepSharing {
 public:
  explicit LockstepSharing(const MixerContext& context) : context_(context) {}

  /// Mixer::share().
  task<std::vector<NeighbourRow>> share(SharedRow row);

 private:
  std::shared_ptr<BufferedRow> buffer(int peer, Channel channel, std::size_t length);

  MixerContext context_;
  std::map<std::pair<int, Channel>, std::shared_ptr<BufferedRow>> buffers_;
};

}  // namespace gossamer::gossip
