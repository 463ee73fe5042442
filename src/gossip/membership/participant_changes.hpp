// The changes of the participants of an open run, as one peer knows them, or as another
// has sent them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "gossip/link.hpp"
#include "topology/participants/participants.hpp"

namespace gossamer::gossip {

/// Counts the changes of one peer: odd when it takes part. The higher one is the later one. A peer
/// that takes part at the start begins with 1, another one with 0.
using ParticipantVersion = std::uint32_t;

inline bool takes_part(ParticipantVersion version) { return version % 2 != 0; }

/// A value. Thread: one at a time.
class ParticipantChanges {
 public:
  /// Of one peer: by version the first round, without those that a later version has overtaken.
  using Versions = std::map<ParticipantVersion, Round>;

  ParticipantChanges() = default;
  /// None. `first`: those that take part at the start.
  explicit ParticipantChanges(const std::vector<int>& first) : first_(first.begin(), first.end()) {}

  /// From round `first` on, `peer` has this version.
  void add(int peer, ParticipantVersion version, Round first);
  const std::map<int, Versions>& by_peer() const { return by_peer_; }

  ParticipantVersion latest(int peer) const;
  /// The round from which on the peer has its latest version; 0: from the start.
  Round latest_since(int peer) const;
  bool has(int peer, ParticipantVersion version, Round first) const;
  bool takes_part_at(int peer, Round t) const;
  /// How many changes of a peer take effect after round t.
  std::size_t to_come(int peer, Round t) const;
  /// The round up to which `peer` takes part by these changes and by `others` differently. If their
  /// latest versions differ, what lasts is not counted: one of them does not know the later one.
  Round last_difference(int peer, const ParticipantChanges& others) const;
  /// What Participants::set_changes() takes, of a run with ids 0 … peers − 1. Where all leave at
  /// once, all stay up to the next change, in which the others find them: those that join in the
  /// same round take their rows.
  std::vector<topology::ParticipantChange> timeline(int peers) const;

 private:
  std::set<int> first_;
  std::map<int, Versions> by_peer_;
};

}  // namespace gossamer::gossip
