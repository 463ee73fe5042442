// Which round a peer goes on with when the others have left it behind (policy deadline).
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "gossip/links/link.hpp"
#include "gossip/scheduler.hpp"

namespace gossamer::gossip {

/// A running mean, of the newest samples above all; the first sample where there was none.
void smooth(std::optional<double>& mean, double sample);

/// How fast this peer is, and how fast the others are. Thread: the scheduler's.
class Pace {
 public:
  /// The neighbours, as their rows tell.
  struct Others {
    std::map<int, std::pair<Round, Time>>
        seen;                ///< the round that one has begun to mix in, and when its row came
    bool took_part = false;  ///< somebody's row was mixed in this peer's last round
  };

  /// Everybody's first round, where that is not 0: a run that goes on.
  void begin_at(Round first) { first_ = first; }
  /// This peer begins to mix, for the first time in its round or again.
  void begin_mix(Time now) {
    if (!busy_) busy_ = now - round_began_;
  }
  /// The round after t: the next one; of a peer that is behind, the first that the others will not
  /// have begun when it is ready to mix again. To come for a round too late is to have come for
  /// nothing. Of the others the middle one is looked at (of two the one behind), so that nobody
  /// follows a single one that is far ahead.
  Round next(Round t, const Others& others, Time now);

 private:
  Round first_ = 0;
  std::optional<Time> busy_;  ///< what this peer did by itself in its last round
  Time round_began_{0};
  struct Neighbour {
    Round round = 0;  ///< as seen when the last round ended
    Time seen{0};
    std::optional<double>
        seconds_a_round;  ///< of its own rounds, smoothed: who is the middle one changes
  };
  std::map<int, Neighbour> neighbours_;
};

}  // namespace gossamer::gossip
