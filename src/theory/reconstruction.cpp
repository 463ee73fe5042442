#include "theory/reconstruction.hpp"

#include <algorithm>
#include <set>

#include "base/check.hpp"

namespace gossamer::theory {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;

/// Shares that differ by less are equal.
constexpr double kEqual = 1e-9;

/// Calls visit(t, C) for each round, with C[i, t·n + j]: the part of Δ_j(t) in the row that peer i
/// sends.
template <class Visit>
void for_each_round(const MixingSchedule& schedule, Round rounds, double consensus_rate,
                    Visit visit) {
  const Index n = schedule.peers();
  MatrixXd sent = MatrixXd::Zero(n, n * static_cast<Index>(rounds));
  for (Round t = 0; t < rounds; ++t) {
    if (t > 0) {
      const auto w = schedule.at(t - 1);
      const Index known = n * static_cast<Index>(t);
      const MatrixXd before = sent.leftCols(known);
      for (int i = 0; i < schedule.peers(); ++i) {
        auto row = sent.row(i).head(known);
        row *= 1 - consensus_rate * (1 - w->self_weight(i));
        for (const auto& [peer, weight] : w->in_neighbours(i))
          row += consensus_rate * weight * before.row(peer);
      }
    }
    sent.middleCols(n * static_cast<Index>(t), n).diagonal().setOnes();
    visit(t, sent);
  }
}

}  // namespace

Reconstruction::Reconstruction(const MixingSchedule& schedule, const std::vector<int>& observers,
                               Round rounds, const RowModel& model)
    : peers_(schedule.peers()), observers_(observers) {
  const double similarity = model.similarity;
  const auto count = static_cast<Index>(rounds);
  GOSSAMER_CHECK(
      !observers.empty() && rounds > 0 && static_cast<std::size_t>(peers_ * count) <= kMostUpdates,
      "a reconstruction of some updates, and not of too many");
  GOSSAMER_CHECK(similarity >= 0 && similarity < 1, "a similarity in [0, 1)");
  GOSSAMER_CHECK(model.consensus_rate > 0 && model.consensus_rate <= 1 && model.noise > 0,
                 "a step size in (0, 1], and a noise above 0");
  std::vector<Eigen::RowVectorXd> parts;
  for_each_round(schedule, rounds, model.consensus_rate, [&](Round t, const MatrixXd& sent) {
    std::set<int> known(observers.begin(), observers.end());
    const auto w = schedule.at(t);
    for (const int observer : observers)
      for (const auto& neighbour : w->in_neighbours(observer)) known.insert(neighbour.peer);
    for (const int peer : known) {
      rows_.push_back({peer, t});
      parts.push_back(sent.row(peer));
    }
  });

  const auto size = static_cast<Index>(rows_.size());
  MatrixXd combinations(size, peers_ * count);
  for (Index k = 0; k < size; ++k) combinations.row(k) = parts[static_cast<std::size_t>(k)];
  MatrixXd by_peer = MatrixXd::Zero(size, peers_);  // the parts of a peer's updates, added up
  for (Index t = 0; t < count; ++t) by_peer += combinations.middleCols(t * peers_, peers_);
  covariances_ = (1 - similarity) * combinations;
  for (Index t = 0; t < count; ++t)
    covariances_.middleCols(t * peers_, peers_) += similarity * by_peer;
  MatrixXd covariance = (1 - similarity) * combinations * combinations.transpose();
  covariance += similarity * by_peer * by_peer.transpose();
  for (Index k = 0; k < size; ++k) {
    const int peer = rows_[static_cast<std::size_t>(k)].peer;
    const bool own = std::ranges::binary_search(observers, peer);
    covariance(k, k) += own ? RowModel::kRounding : model.noise;
  }
  factor_.compute(covariance);

  const MatrixXd explained = factor_.matrixL().solve(covariances_);
  shares_.resize(peers_, count);
  for (Index t = 0; t < count; ++t)
    for (Index i = 0; i < peers_; ++i)
      shares_(i, t) = std::clamp(explained.col(t * peers_ + i).squaredNorm(), 0.0, 1.0);
}

Round Reconstruction::best_round(int peer) const {
  Index best = 0;
  for (Index t = 1; t < shares_.cols(); ++t)
    if (shares_(peer, t) > shares_(peer, best) + kEqual) best = t;
  return static_cast<Round>(best);
}

Eigen::VectorXd Reconstruction::weights(int peer, Round t) const {
  return factor_.solve(covariances_.col(column(peer, t)));
}

}  // namespace gossamer::theory
