// The pace of a peer under policy deadline: the round that it continues with when the others have
// left it behind.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "gossip/link.hpp"
#include "gossip/scheduler.hpp"

namespace gossamer::gossip {

/// Updates an exponentially weighted running mean; the first sample where there was none.
void smooth(std::optional<double>& mean, double sample);

/// Compares this peer's speed with that of its neighbours. Thread: the scheduler's.
class Pace {
 public:
  /// The progress of the neighbours, by the rows that arrived from them.
  struct Others {
    /// The newest round in which a neighbour has begun to mix, and when its row arrived.
    std::map<int, std::pair<Round, Time>> seen;
    bool took_part = false;  ///< a neighbour's row was mixed in this peer's last round
  };

  /// The first round of all peers, if it is not 0: of a resumed run.
  void begin_at(Round first) { first_ = first; }
  /// This peer begins to mix, for the first time in its round or again.
  void begin_mix(Time now) {
    if (!busy_) busy_ = now - round_began_;
  }
  /// The round after t: the next one, or, for a peer that is behind, the first one that the others
  /// will not have begun when this peer is ready to mix again, because its row would be too late
  /// for an earlier one. The others are represented by the one in the middle (of two, the one
  /// behind), so that a single one far ahead is not followed.
  Round next(Round t, const Others& others, Time now);

 private:
  Round first_ = 0;
  std::optional<Time> busy_;  ///< time that this peer needed by itself in its last round
  Time round_began_{0};
  struct Neighbour {
    Round round = 0;  ///< as seen at the end of the last round
    Time seen{0};
    std::optional<double> seconds_per_round;  ///< of this neighbour, smoothed
  };
  std::map<int, Neighbour> neighbours_;
};

}  // namespace gossamer::gossip
