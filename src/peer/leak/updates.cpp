#include "peer/leak/updates.hpp"

namespace gossamer::peer {
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
      mixed = mix(*w, [&](int peer, double weight, std::vector<double>& sum) {
        const std::span<const float> other = sent.row(peer, t - 1);
        for (std::size_t k = 0; k < length_; ++k) sum[k] += weight * static_cast<double>(other[k]);
      });
      starts_.push_back(mix(*w, [&](int peer, double weight, std::vector<double>& sum) {
        const std::vector<double>& other = starts_[t - 1][static_cast<std::size_t>(peer)];
        for (std::size_t k = 0; k < length_; ++k) sum[k] += weight * other[k];
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

Updates::Rows Updates::mix(const topology::MixingMatrix& w, const AddRow& add_row) const {
  Rows mixed;
  for (int i = 0; i < w.peers(); ++i) {
    std::vector<double>& sum = mixed.emplace_back(length_);
    add_row(i, w.self_weight(i), sum);
    for (const auto& neighbour : w.in_neighbours(i)) add_row(neighbour.peer, neighbour.weight, sum);
  }
  return mixed;
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
