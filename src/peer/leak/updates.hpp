// The updates behind the rows of a run, and what observers estimate of them.
#pragma once

#include <span>
#include <vector>

#include "peer/leak/sent_rows.hpp"
#include "peer/setup/setup.hpp"
#include "theory/reconstruction.hpp"

namespace gossamer::peer {

/// The rows of a run of D-PSGD in the order adapt then combine, or of CHOCO-SGD, apart into what
/// mixing made of earlier rows and what training added. Immutable.
class Updates {
 public:
  /// `sent` holds `rounds` rounds, and outlives it, as `setup` does. `consensus_rate`: as of
  /// theory::RowModel. Memory: 2 n d doubles a round.
  Updates(const Setup& setup, const SentRows& sent, gossip::Round rounds, double consensus_rate);

  /// [d]: what training added to the row of `peer` in round t.
  const std::vector<double>& of(int peer, gossip::Round t) const {
    return updates_[t][static_cast<std::size_t>(peer)];
  }
  /// The mean squared coding error of the observers' own rows, which they know, over the mean
  /// squared update.
  double noise(const std::vector<int>& observers) const;
  /// [d]: the estimate of that update by observers of the rows of `known`, given the starting rows.
  std::vector<double> estimate(const theory::Reconstruction& known, int peer,
                               gossip::Round t) const;

 private:
  using Rows = std::vector<std::vector<double>>;  ///< by peer

  const SentRows& sent_;
  std::size_t length_;
  std::vector<Rows> updates_, starts_;  ///< by round; starts: what mixing made of the first rows
};

}  // namespace gossamer::peer
