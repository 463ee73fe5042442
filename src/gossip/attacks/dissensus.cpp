// Dissensus: a hostile peer sends receiver i
//   x_i − ε (Σ_k W[i][k] (x_k − x_i)) / (Σ_j W[i][j]),
// with the first sum over the honest and the second over the hostile in-neighbours of i. For ε = 1
// the hostile messages cancel what the honest ones do in a weighted mean, and no row moves.
#include "gossip/attack.hpp"

namespace gossamer::gossip::attacks::dissensus {
namespace {

class Dissensus final : public Attack {
 public:
  std::vector<double> message(const AttackView& view, int receiver, double epsilon) const override {
    const std::vector<float>& x = view.rows[static_cast<std::size_t>(receiver)];
    std::vector<double> honest(x.size());
    double hostile = 0;
    for (const topology::Neighbour& neighbour : view.w.in_neighbours(receiver)) {
      if (view.is_hostile(neighbour.peer)) {
        hostile += neighbour.weight;
        continue;
      }
      const std::vector<float>& row = view.rows[static_cast<std::size_t>(neighbour.peer)];
      for (std::size_t k = 0; k < x.size(); ++k)
        honest[k] += neighbour.weight * (static_cast<double>(row[k]) - static_cast<double>(x[k]));
    }
    std::vector<double> message(x.begin(), x.end());
    for (std::size_t k = 0; k < x.size(); ++k) message[k] -= epsilon * honest[k] / hostile;
    return message;
  }
};

}  // namespace

AttackKind descriptor() {
  return {.name = "dissensus",
          .summary = "the receiver's row, moved against what its honest neighbours pull it to",
          .source = "He, Karimireddy and Jaggi 2022 (ClippedGossip)",
          .parameters = {},
          .strength_help = "ε; with 1 the rows of a weighted mean do not move",
          .default_strength = published(1),
          .reads_honest_rows = true,
          .make = make_attack<Dissensus>};
}

}  // namespace gossamer::gossip::attacks::dissensus
