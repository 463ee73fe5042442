// A peer's view of its neighbours: which of them are present in which round, what that leaves of
// its row and column of W, and the deviations from W that it records.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "gossip/link.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::gossip {

/// A difference between W_t and what was mixed: in the mix of round `round` on `channel`, peer
/// `from`'s row was that of `used_round`, or it was missing, except for its first `values` values,
/// which had arrived before the peer was lost.
struct Deviation {
  Round round = 0;
  int from = 0;
  Channel channel = 0;
  bool missing = false;
  Round used_round = 0;
  std::uint64_t values = 0;
};

/// A neighbour is present until it is lost, and again from the round on in which its restored link
/// takes effect. Thread: the scheduler's.
class PeerView {
 public:
  /// `schedule` outlives the view.
  PeerView(int peer, const topology::MixingSchedule& schedule) : peer_(peer), schedule_(schedule) {}

  int peer() const { return peer_; }
  const topology::MixingSchedule& schedule() const { return schedule_; }

  // ---- presence
  /// Whether `peer` is present in this round or a later one.
  bool is_present(int peer) const { return !lost_.contains(peer); }
  bool is_present(int peer, Round t) const;
  /// The round from which on `peer`, which was lost, is present again; 0 if it was never lost.
  Round present_since(int peer) const;
  /// Whether no neighbour was ever lost.
  bool is_complete() const { return lost_.empty() && present_since_.empty(); }
  /// The link to `peer` was lost. Returns whether the peer was present.
  bool remove(int peer);
  /// `peer`, which was lost, is present from round `first` on.
  void restore(int peer, Round first);
  /// Whether this peer alone has proposed that round: what `peer` has sent by then is for another.
  bool is_proposed(int peer) const;
  /// Of a peer that is restored.
  void set_proposed(int peer, bool proposed) { present_since_.at(peer).proposed = proposed; }

  // ---- what is left of W in round t; spans are valid until the next call
  /// Whether all of it is: every neighbour is present.
  bool is_complete(const topology::MixingMatrix& w, Round t) const;
  std::span<const topology::Neighbour> in_neighbours(const topology::MixingMatrix& w, Round t);
  std::span<const int> out_neighbours(const topology::MixingMatrix& w, Round t);
  /// W[i][i], plus the weights that the absent out-neighbours would give to this peer's row.
  double own_weight(const topology::MixingMatrix& w, Round t) const;
  /// Whether this peer's row of W equals its column: it gives each neighbour the weight that it
  /// takes from it.
  bool is_mirrored(const topology::MixingMatrix& w) const;

  /// Whether rows with a conserved sum are mixed so that what is left of a directed W conserves it
  /// (ChannelSpec::conserves_sum). Off while the network is not strongly connected: the sum
  /// would flow to peers from which it does not return.
  bool conserves_sums() const { return conserves_sums_; }
  void set_conserves_sums(bool conserves) { conserves_sums_ = conserves; }

  // ---- deviations
  void record(const Deviation& deviation) { deviations_.push_back(deviation); }
  /// Records the in-neighbours that are absent in round t.
  void record_absent(Round t, Channel channel);
  /// Records that this peer mixes with no in-neighbour in round t, which it skips. w: W_t.
  void record_skipped(const topology::MixingMatrix& w, Round t, Channel channel);
  /// The deviations since the last call.
  std::vector<Deviation> take_deviations() { return std::exchange(deviations_, {}); }

 private:
  int peer_;
  const topology::MixingSchedule& schedule_;
  std::set<int> lost_;
  struct Restored {
    Round since = 0;
    bool proposed = false;  ///< is_proposed()
  };
  std::map<int, Restored> present_since_;  ///< neighbours that were lost and are restored
  bool conserves_sums_ = true;
  std::vector<topology::Neighbour> in_neighbours_;
  std::vector<int> out_neighbours_;
  std::vector<Deviation> deviations_;
};

}  // namespace gossamer::gossip
