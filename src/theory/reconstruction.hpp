// What peers can learn of the updates of others from the rows that they receive.
//
// In a round of D-PSGD (adapt then combine) peer i trains, which adds an update Δ_i(t) to its row,
// and sends the sum m_i(t); then it mixes: x_i(t+1) = Σ_j W_t[i][j] m_j(t). Hence every row is a
// known combination of the updates so far,
//   m_i(t) = Σ_{j, s ≤ t} C[(i, t), (j, s)] Δ_j(s) + the starting rows, mixed,
// and an observer that knows all W_t and the starting rows estimates the updates by linear
// regression, including updates of peers that are not its neighbours (El Mrini, Cyffers and Bellet
// 2024, "Privacy Attacks in Decentralized Learning"; they take the gradients of a peer to be alike,
// which is a similarity near 1 here).
//
// Peers that mix decoded rows m̂ mix by differences (CHOCO-SGD, with its step size γ; D-PSGD with
// a codec has γ = 1):
//   x_i(t+1) = m_i(t) + γ Σ_j W_t[i][j] (m̂_j(t) − m̂_i(t)).
// The regression takes the coding errors m̂ − m of the rows that the observers know from others for
// independent noise. That they enter later rows too, and are correlated from round to round where a
// codec makes up for what it left out, it ignores.
//
// The regression is the best linear one where the updates are random with mean 0 and equal
// variance, those of different peers are uncorrelated, and those of one peer in two rounds have the
// correlation `similarity`. The share of an update's variance that the rows explain then depends on
// the graph, the observers, the rounds and the similarity alone. The updates of a run are
// correlated among peers, and rows are rounded to float32, so there it may be more or less.
#pragma once

#include <Eigen/Dense>
#include <vector>

#include "topology/mixing_matrix.hpp"

namespace gossamer::theory {

using topology::MixingSchedule;
using topology::Round;

/// The row that `peer` sends in round t.
struct SentRow {
  int peer = 0;
  Round t = 0;

  friend bool operator==(const SentRow&, const SentRow&) = default;
};

/// Assumptions of the regression.
struct RowModel {
  double similarity = 0;      ///< of a peer's updates in two rounds: in [0, 1)
  double consensus_rate = 1;  ///< γ, in (0, 1]
  double noise = kRounding;   ///< variance of the coding error of the others' rows, > 0, where an
                              ///< update has variance 1

  static constexpr double kRounding = 1e-8;  ///< of rounding to float32
};

/// What `observers` (peers, ascending, at least one) learn together in rounds 0 … rounds − 1: each
/// knows its own row and those of its in-neighbours. Immutable.
class Reconstruction {
 public:
  /// n · rounds is at most kMostUpdates (checked). Time: of the order of rows³ + rows² · n · rounds
  /// + edges of W · n · rounds².
  Reconstruction(const MixingSchedule& schedule, const std::vector<int>& observers, Round rounds,
                 const RowModel& model);

  const std::vector<int>& observers() const { return observers_; }
  /// The rows that the observers know, by round and then by peer.
  const std::vector<SentRow>& rows() const { return rows_; }
  /// The share of the variance of Δ_peer(t) that rows() explain, in [0, 1]: 1 if they determine it.
  double share(int peer, Round t) const { return shares_(peer, static_cast<Eigen::Index>(t)); }
  /// The round of the update of `peer` of which rows() explain most, the first of equal ones.
  Round best_round(int peer) const;
  /// [rows().size()]: the estimate of Δ_peer(t) is Σ_k weights[k] (row k − its part of the start).
  Eigen::VectorXd weights(int peer, Round t) const;

 private:
  Eigen::Index column(int peer, Round t) const {
    return static_cast<Eigen::Index>(t) * peers_ + peer;
  }

  Eigen::Index peers_;
  std::vector<int> observers_;
  std::vector<SentRow> rows_;
  Eigen::MatrixXd covariances_;         ///< of rows() and updates: rows().size() × (rounds · n)
  Eigen::LLT<Eigen::MatrixXd> factor_;  ///< of the covariance of rows()
  Eigen::MatrixXd shares_;              ///< n × rounds
};
inline constexpr std::size_t kMostUpdates = 4096;

}  // namespace gossamer::theory
