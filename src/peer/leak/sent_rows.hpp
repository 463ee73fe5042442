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
      : peers_(peers), sent_(rounds, std::vector<Sent>(static_cast<std::size_t>(peers))) {}

  /// Makes the next run of `setup` record its rows here, without a change to any message. To be
  /// called once; this object outlives that run.
  void listen(Setup& setup);
  /// Whether all rows of all rounds are here.
  bool complete() const { return rows_ == sent_.size() * static_cast<std::size_t>(peers_); }
  /// [d]: the row of which `peer` sent a message in round t.
  std::span<const float> exact(int peer, gossip::Round t) const { return at(peer, t).exact; }
  /// [d]: what peers mix of it: what they decode, or with CHOCO-SGD have decoded so far.
  std::span<const float> decoded(int peer, gossip::Round t) const {
    const std::vector<float>& row = at(peer, t).decoded;
    return row.empty() ? exact(peer, t) : row;
  }
  /// [d]: the same with the starting value in place of each value that has never come.
  std::span<const float> guessed(int peer, gossip::Round t) const {
    const std::vector<float>& row = at(peer, t).guessed;
    return row.empty() ? decoded(peer, t) : row;
  }

 private:
  friend class RowKeeper;
  friend class CodecTap;
  struct Sent {
    std::vector<float> exact = {}, decoded = {}, guessed = {};  ///< empty: as the one before
  };

  const Sent& at(int peer, gossip::Round t) const {
    return sent_[t][static_cast<std::size_t>(peer)];
  }
  /// Once for each peer and round.
  void keep(int peer, gossip::Round t, Sent sent);
  gossip::AttackPlan plan();

  int peers_;
  std::size_t rows_ = 0;
  std::vector<std::vector<Sent>> sent_;  ///< by round and peer
};

}  // namespace gossamer::peer
