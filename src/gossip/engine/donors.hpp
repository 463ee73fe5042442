// The donors of the peers that join when the participants of a run change.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "topology/mixing_matrix.hpp"

namespace gossamer::gossip {

/// The donors of a schedule's changes of participants. A donor is a neighbour in the graphs of the
/// change: one that stays, or one that joins too and has rows itself by then. Each joining peer
/// takes the shortest way to one that stays; of neighbours that are as near, the one with the
/// fewest to give to, then the lowest id. All peers compute the same donors. A random sequence has
/// no fixed neighbours: all of its peers count as neighbours. Immutable.
class Donors {
 public:
  explicit Donors(const topology::MixingSchedule& schedule);

  struct Joining {
    Round round = 0;
    int donor = 0;
  };
  /// The last change in round t or before in which the peer joins.
  std::optional<Joining> last(int peer, Round t) const;
  /// A peer that is given rows with the change in `round`.
  struct Receiver {
    Round round = 0;
    int peer = 0;
  };
  /// The peers that `donor` gives its rows to with the changes in rounds first … last, ascending.
  std::vector<Receiver> receivers(int donor, Round first, Round last) const;
  /// Whether `donor` gives `peer` its rows with a change in round t.
  bool gives(int donor, int peer, Round t) const;

 private:
  struct Change {
    Round first = 0;
    std::map<int, int> donors;  ///< by joining peer
  };
  std::vector<Change> changes_;
};

}  // namespace gossamer::gossip
