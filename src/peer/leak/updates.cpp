#include "peer/leak/updates.hpp"

namespace gossamer::peer {
namespace {

/// Row i: Σ_j W[i][j] row_of(j), in double.
template <class RowOf>
std::vector<std::vector<double>> mix(const topology::MixingMatrix& w, std::size_t length,
                                     RowOf row_of) {
  std::vector<std::vector<double>> mixed;
  for (int i = 0; i < w.peers(); ++i) {
    std::vector<double>& sum = mixed.emplace_back(length);
    const auto add = [&](int peer, double weight) {
      const auto row = row_of(peer);
      for (std::size_t k = 0; k < length; ++k) sum[k] += weight * static_cast<double>(row[k]);
    };
    add(i, w.self_weight(i));
    for (const auto& neighbour : w.in_neighbours(i)) add(neighbour.peer, neighbour.weight);
  }
  return mixed;
}

}  // namespace

Updates::Updates(const Setup& setup, const SentRows& sent, gossip::Round rounds)
    : sent_(sent), length_(setup.parameters) {
  Rows mixed;
  std::vector<float> row(length_);
  for (int i = 0; i < setup.workers(); ++i) {
    setup.workload->initialise(i, row);
    mixed.emplace_back(row.begin(), row.end());
  }
  starts_.push_back(mixed);
  for (gossip::Round t = 0; t < rounds; ++t) {
    if (t > 0) {
      const auto w = setup.schedule->at(t - 1);
      mixed = mix(*w, length_, [&](int peer) { return sent.row(peer, t - 1); });
      starts_.push_back(mix(*w, length_, [&](int peer) -> std::span<const double> {
        return starts_[t - 1][static_cast<std::size_t>(peer)];
      }));
    }
    Rows& updates = updates_.emplace_back();
    for (std::size_t i = 0; i < mixed.size(); ++i) {
      std::vector<double>& update = updates.emplace_back(length_);
      const std::span<const float> row_sent = sent.row(static_cast<int>(i), t);
      for (std::size_t k = 0; k < length_; ++k)
        update[k] = static_cast<double>(row_sent[k]) - mixed[i][k];
    }
  }
}

std::vector<double> Updates::estimate(const theory::Reconstruction& known, int peer,
                                      gossip::Round t) const {
  std::vector<double> estimate(length_);
  const Eigen::VectorXd weights = known.weights(peer, t);
  for (std::size_t r = 0; r < known.rows().size(); ++r) {
    const auto [from, round] = known.rows()[r];
    const double weight = weights[static_cast<Eigen::Index>(r)];
    const std::span<const float> row = sent_.row(from, round);
    const std::vector<double>& start = starts_[round][static_cast<std::size_t>(from)];
    for (std::size_t k = 0; k < length_; ++k)
      estimate[k] += weight * (static_cast<double>(row[k]) - start[k]);
  }
  return estimate;
}

}  // namespace gossamer::peer
