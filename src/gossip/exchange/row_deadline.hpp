// The deadline for rows: for how long a peer waits for the rows of a neighbour whose process
// answers, but which sends none. Heartbeats show that a process runs, not that its peer takes part.
//
// A neighbour that itself waits for another peer is given more time: each peer announces to its
// neighbours that it waits (ControlMessage::waiting), and the length of its chain: how many peers
// wait one for the next, up to the one that waits for none. The end of a chain is lost first, by a
// whole limit, and those behind it go on before their own neighbours lose patience. A peer that
// waits in a later round has sent the row of this one, so that is no excuse. What a neighbour says
// of itself is believed only within a bound: a peer that lies is waited for (kLongestChain + 1)
// limits at most. A lie of that length may cost links between honest peers too, which are restored
// later.
//
// Pure: the caller supplies the time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "gossip/link.hpp"
#include "gossip/scheduler.hpp"

namespace gossamer::gossip {

/// One peer's patience with its neighbours. Thread: the scheduler's.
class RowDeadline {
 public:
  /// The chain that a `waiting` message may claim at most.
  static constexpr std::uint8_t kLongestChain = 16;

  /// `limit` > 0: the time for which the rows of one neighbour are waited for within one round.
  explicit RowDeadline(Time limit) : limit_(limit) {}

  struct Finding {
    std::vector<int> overdue;  ///< neighbours whose rows are late; ascending, each named once
    std::uint8_t chain = 0;    ///< to be announced in a `waiting` message; 0: nothing
  };
  /// `counted` time has passed, and this peer, which is in `round`, waits for rows of the peers
  /// `awaited` (ascending).
  Finding advance(Time counted, Round round, std::span<const int> awaited);
  /// A `waiting` message of `peer`, which is in `round`. An error says, as a clause, why the
  /// message makes no sense.
  Status on_waiting(int peer, Round round, std::uint8_t chain);

  /// `donor`, which is to give this joining peer rows in a later round, has begun round t: it is
  /// waited for anew, unless it has said that before.
  void on_donor_begins(int donor, Round t);

  Time limit() const { return limit_; }

 private:
  struct Wait {
    Time waited{0};          ///< in this round
    std::uint8_t chain = 0;  ///< that the neighbour has claimed in this round
    Round begun = 0;         ///< of a donor: the last round that it has announced
  };

  Time limit_;
  Round round_ = 0;
  std::map<int, Wait> waits_;   ///< by neighbour
  std::uint8_t announced_ = 0;  ///< the chain that was announced last in this round
  Time since_announcement_{0};
};

}  // namespace gossamer::gossip
