// What the tests of algorithms share in which each peer has a pace of its own.
#pragma once

#include "tests/gossip/test_network.hpp"

namespace gossamer::gossip::testing {

inline constexpr std::size_t kLength = 5;
inline constexpr float kRate = 0.05F;
using Values = std::vector<double>;

/// Steps of 10 ms on average that differ, so that no two events fall together.
inline NetworkOptions at_their_own_pace(Policy policy, Time latency) {
  NetworkOptions options;
  options.policy = policy;
  options.step_time = std::chrono::milliseconds(10);
  options.step_spread = 0.3;
  options.links = {latency, 0};
  return options;
}

/// How long peer i's step t takes there.
inline Time step_time(const NetworkOptions& options, int peer, Round t) {
  TrainRequest request;
  request.peer = request.shard_of = peer;
  request.step = t;
  return StepTimes{options.step_time,
                   options.slow_peers,
                   options.slow_factor,
                   {.width = options.step_spread},
                   kSeed}
      .of(request);
}

/// x ← x − γ (at − target): a step of PullTrainer's, in double.
inline void descend(Values& x, const Values& at, std::span<const float> target) {
  for (std::size_t k = 0; k < target.size(); ++k)
    x[k] -= static_cast<double>(kRate) * (at[k] - target[k]);
}

inline Values sum_of(const std::vector<std::vector<float>>& rows) {
  Values sum(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t k = 0; k < row.size(); ++k) sum[k] += row[k];
  return sum;
}

}  // namespace gossamer::gossip::testing
