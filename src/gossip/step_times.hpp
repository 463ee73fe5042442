// The duration of a local step in virtual time: the same for all peers and steps, except for
// stragglers and a random factor; or listed by peer.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/philox.hpp"
#include "gossip/scheduler.hpp"
#include "gossip/spread.hpp"
#include "gossip/trainer.hpp"

namespace gossamer::gossip {

struct StepTimes {
  Time each{0};            ///< the mean
  int slow_peers = 0;      ///< peers 0 … slow_peers−1 are slower
  double slow_factor = 1;  ///< by this factor
  Spread spread = {};  ///< of each step by itself, keyed by (seed, peer, step), not by the batch
  std::uint64_t seed = 0;
  /// The mean and the spread of the steps of a peer.
  struct OfPeer {
    Time each{0};
    Spread spread = {};
  };
  std::vector<OfPeer> by_peer = {};  ///< if not empty, in place of all of the above but the seed

  /// The duration of all gradients of a request.
  Time of(const TrainRequest& request) const {
    const bool listed = !by_peer.empty();
    const OfPeer own =
        listed ? by_peer.at(static_cast<std::size_t>(request.peer)) : OfPeer{each, spread};
    const double slow = !listed && request.peer < slow_peers ? slow_factor : 1;
    double steps = 0;
    for (int k = 0; k < request.steps; ++k) {
      RandomStream random(seed, static_cast<std::uint32_t>(request.shard_of), Purpose::step_time,
                          request.step + static_cast<std::uint64_t>(k));
      steps += own.spread.factor(random);
    }
    return Time(std::llround(static_cast<double>(own.each.count()) * slow * steps));
  }
};

}  // namespace gossamer::gossip
