// How long a round takes in a simulated network, foretold: a latency and the busiest capacity for
// each exchange (the α-β model: Hockney 1994; of all-reduce: Patarasuk and Yuan 2009), beside the
// training where they overlap and after it where not.
#pragma once

#include <algorithm>
#include <optional>

#include "peer/runtime/setup.hpp"

namespace gossamer::peer {

/// Seconds of virtual time, the mean over the rounds of a period.
struct RoundTime {
  double training = 0;
  double beside = 0;  ///< exchanges under way while gradients are computed
  double after = 0;   ///< those that training waits for, or that wait for it
  double seconds() const { return std::max(training, beside) + after; }
};

/// None where nobody waits for all (policies but sync, async_server), where the peers' shards give
/// them unequal numbers of local steps, or where links or steps are drawn at random or listed in a
/// table.
std::optional<RoundTime> round_time(const Setup& setup);

}  // namespace gossamer::peer
