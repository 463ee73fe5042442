// The rows that all peers send in the first rounds of a run in one process, for an attack that
// estimates what observers learn from them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gossip/attack.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

/// Of D-PSGD, with any codec that it takes, and of CHOCO-SGD. Thread: the scheduler's.
class SentRows {
 public:
  SentRows(int peers, gossip::Round rounds)
      : peers_(peers), seen_(rounds, Rows(static_cast<std::size_t>(peers))), exact_(seen_) {}

  /// Has a run of `setup` leave its rows here. It changes no message. Once, before the run;
  /// outlives the run.
  void listen(Setup& setup);
  /// Whether all rows of all rounds are here.
  bool complete() const { return rows_ == seen_.size() * static_cast<std::size_t>(peers_); }
  /// [d]: the row of which `peer` sent a message in round t.
  std::span<const float> exact(int peer, gossip::Round t) const { return at(exact_, peer, t); }
  /// [d]: what its receivers know of that row: without a codec, the row; else what they decode, or
  /// with CHOCO-SGD have decoded so far, and the starting value where the codec has left out a
  /// value every time.
  std::span<const float> seen(int peer, gossip::Round t) const {
    const std::span<const float> row = at(seen_, peer, t);
    return row.empty() ? exact(peer, t) : row;
  }

 private:
  friend class RowKeeper;
  friend class CodecTap;
  using Rows = std::vector<std::vector<float>>;  ///< by peer

  std::span<const float> at(const std::vector<Rows>& rows, int peer, gossip::Round t) const {
    return rows[t][static_cast<std::size_t>(peer)];
  }
  /// Once for each peer and round. `seen` is empty if it is `exact`.
  void keep(int peer, gossip::Round t, std::vector<float> exact, std::vector<float> seen);
  gossip::AttackPlan plan();

  int peers_;
  std::size_t rows_ = 0;
  std::vector<Rows> seen_, exact_;  ///< by round
};

}  // namespace gossamer::peer
