#include "peer/leak/updates.hpp"

#include <algorithm>

namespace gossamer::peer {
namespace {

/// Row i: exact(i) + γ Σ_j W[i][j] (decoded(j) − decoded(i)), in double.
template <class Exact, class Decoded>
std::vector<std::vector<double>> mix(const topology::MixingMatrix& w, double consensus_rate,
                                     Exact exact, Decoded decoded) {
  std::vector<std::vector<double>> mixed;
  for (int i = 0; i < w.peers(); ++i) {
    const auto row = exact(i), own = decoded(i);
    std::vector<double>& sum = mixed.emplace_back(row.begin(), row.end());
    for (const auto& neighbour : w.in_neighbours(i)) {
      const auto theirs = decoded(neighbour.peer);
      const double weight = consensus_rate * neighbour.weight;
      for (std::size_t k = 0; k < sum.size(); ++k)
        sum[k] += weight * (static_cast<double>(theirs[k]) - static_cast<double>(own[k]));
    }
  }
  return mixed;
}

}  // namespace

Updates::Updates(const Setup& setup, const SentRows& sent, gossip::Round rounds,
                 double consensus_rate)
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
      mixed = mix(
          *w, consensus_rate, [&](int peer) { return sent.exact(peer, t - 1); },
          [&](int peer) { return sent.decoded(peer, t - 1); });
      const auto start = [&](int peer) -> std::span<const double> {
        return starts_[t - 1][static_cast<std::size_t>(peer)];
      };
      starts_.push_back(mix(*w, consensus_rate, start, start));
    }
    Rows& updates = updates_.emplace_back();
    for (std::size_t i = 0; i < mixed.size(); ++i) {
      std::vector<double>& update = updates.emplace_back(length_);
      const std::span<const float> row_sent = sent.exact(static_cast<int>(i), t);
      for (std::size_t k = 0; k < length_; ++k)
        update[k] = static_cast<double>(row_sent[k]) - mixed[i][k];
    }
  }
}

double Updates::noise(const std::vector<int>& observers) const {
  double errors = 0, squares = 0;
  for (gossip::Round t = 0; t < updates_.size(); ++t)
    for (const int peer : observers) {
      const std::span<const float> exact = sent_.exact(peer, t), guessed = sent_.guessed(peer, t);
      for (std::size_t k = 0; k < length_; ++k) {
        const double error = static_cast<double>(guessed[k]) - static_cast<double>(exact[k]);
        errors += error * error;
        squares += of(peer, t)[k] * of(peer, t)[k];
      }
    }
  return squares > 0 ? errors / squares : 0;
}

std::vector<double> Updates::estimate(const theory::Reconstruction& known, int peer,
                                      gossip::Round t) const {
  std::vector<double> estimate(length_);
  const Eigen::VectorXd weights = known.weights(peer, t);
  for (std::size_t r = 0; r < known.rows().size(); ++r) {
    const auto [from, round] = known.rows()[r];
    const double weight = weights[static_cast<Eigen::Index>(r)];
    const bool own = std::ranges::binary_search(known.observers(), from);
    const std::span<const float> row = own ? sent_.exact(from, round) : sent_.guessed(from, round);
    const std::vector<double>& start = starts_[round][static_cast<std::size_t>(from)];
    for (std::size_t k = 0; k < length_; ++k)
      estimate[k] += weight * (static_cast<double>(row[k]) - start[k]);
  }
  return estimate;
}

}  // namespace gossamer::peer
