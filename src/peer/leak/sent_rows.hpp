// The rows that all peers send in the first rounds of a run in one process, for an attack that
// estimates what observers learn from them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gossip/attack.hpp"

namespace gossamer::peer {

/// Thread: the scheduler's.
class SentRows {
 public:
  SentRows(int peers, gossip::Round rounds) : peers_(peers), rounds_(rounds) {}

  /// An attack that changes no message, and keeps the rows here. Outlived by this object.
  gossip::AttackPlan plan();
  /// Whether all rows of all rounds are here.
  bool complete() const { return rows_.size() == rounds_; }
  /// [d]: the row that `peer` sent in round t.
  std::span<const float> row(int peer, gossip::Round t) const {
    return rows_[t][static_cast<std::size_t>(peer)];
  }

 private:
  friend class RowKeeper;

  int peers_;
  gossip::Round rounds_;
  std::vector<std::vector<std::vector<float>>> rows_;  ///< by round and peer
};

}  // namespace gossamer::peer
