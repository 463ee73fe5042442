#include "topology/mixing_matrix.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace gossamer::topology {

MixingMatrix::MixingMatrix(std::vector<std::vector<Neighbour>> rows)
    : hears_(std::move(rows)), heard_by_(hears_.size()), self_weights_(hears_.size(), 1) {
  for (int i = 0; i < peers(); ++i) {
    int last = -1;
    long double sum = 0;  // as the weights were made
    for (const auto& [peer, weight] : hears(i)) {
      GOSSAMER_CHECK(peer > last && peer < peers() && peer != i, "a row is ascending, within n, and without self");
      GOSSAMER_CHECK(weight != 0, "a row lists non-zero weights");
      heard_by_[static_cast<std::size_t>(peer)].push_back(i);
      sum += weight;
      last = peer;
    }
    self_weights_[static_cast<std::size_t>(i)] = static_cast<double>(1 - sum);
  }
}

Graph graph_of(const MixingMatrix& w) {
  Graph graph;
  for (int i = 0; i < w.peers(); ++i) graph.out.emplace_back(w.heard_by(i).begin(), w.heard_by(i).end());
  return graph;
}

const ParameterSet<WeightOptions>& weight_parameters() {
  static const auto set =
      ParameterSet<WeightOptions>()
          .add("weights", &WeightOptions::weights,
               {.help = "metropolis: 1/(1 + the larger degree of an edge's ends); uniform: 1/(1 + the largest degree); "
                        "best_constant: 2/(λ1 + λn−1) of the Laplacian; given: those that the kind or its file prescribes; "
                        "auto: given where there are some, else metropolis",
                .choices = {"auto", "metropolis", "uniform", "best_constant", "given"}})
          .add("lazy", &WeightOptions::lazy, {.help = "mix with (I + W)/2: no negative eigenvalues, half the gap or so"});
  return set;
}

Round sampled_rounds(int peers) {
  return std::clamp<Round>((Round{1} << 20) / static_cast<Round>(peers), 100, 1000);
}

std::string to_string(const WeightOptions& options) { return (options.lazy ? "lazy " : "") + options.weights; }

}  // namespace gossamer::topology
