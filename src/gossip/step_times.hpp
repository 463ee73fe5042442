// How long a local step takes in virtual time: the same for all peers and steps, but for
// stragglers, and for what chance adds.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/philox.hpp"
#include "gossip/links/spread.hpp"
#include "gossip/scheduler.hpp"
#include "gossip/trainer.hpp"

namespace gossamer::gossip {

struct StepTimes {
  Time each{0};            ///< the mean
  int slow_peers = 0;      ///< peers 0 … slow_peers−1 take
  double slow_factor = 1;  ///< so many times as long
  Spread spread =
      {};  ///< of each step by itself, keyed by (seed, peer, step): whoever shares its batch
  std::uint64_t seed = 0;

  /// Of a request's gradients together.
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
