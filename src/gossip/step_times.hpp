// The duration of a local step in virtual time: the same for all peers and steps, except for
// stragglers and a random factor.
#pragma once

#include <cmath>
#include <cstdint>

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

  /// The duration of all gradients of a request.
  Time of(const TrainRequest& request) const {
    double steps = 0;
    for (int k = 0; k < request.steps; ++k) {
      RandomStream random(seed, static_cast<std::uint32_t>(request.shard_of), Purpose::step_time,
                          request.step + static_cast<std::uint64_t>(k));
      steps += spread.factor(random);
    }
    const double slow = request.peer < slow_peers ? slow_factor : 1;
    return Time(std::llround(static_cast<double>(each.count()) * slow * steps));
  }
};

}  // namespace gossamer::gossip
