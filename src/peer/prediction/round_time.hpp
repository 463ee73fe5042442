// The predicted duration of a round in the simulated network, by the α-β model: latency plus the
// time of the busiest node's messages, for each exchange (Hockney 1994; for all-reduce: Patarasuk
// and Yuan 2009). Exchanges overlap with training or follow it, as the algorithm does.
#pragma once

#include <algorithm>
#include <optional>

#include "peer/setup/setup.hpp"

namespace gossamer::peer {

/// Seconds of virtual time, the mean over the rounds of a period.
struct RoundTime {
  double training = 0;
  double overlapped = 0;  ///< exchanges that take place while gradients are computed
  double exposed = 0;     ///< exchanges that do not overlap with training
  /// For which overlapped exchanges occupy the busiest uplink, link or downlink.
  double occupied = 0;
  /// An exposed exchange begins when training is over and what overlaps with it was sent, which
  /// need not have arrived.
  double seconds() const { return std::max(overlapped, std::max(training, occupied) + exposed); }
};

/// Nothing if no node waits for all others (policies other than sync, async_server), if the numbers
/// of local steps differ between peers, if links or step times are random or listed in a table, or
/// if some peers are slower than others and there is no server.
std::optional<RoundTime> round_time(const Setup& setup);

}  // namespace gossamer::peer
