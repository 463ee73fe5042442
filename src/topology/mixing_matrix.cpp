#include "topology/mixing_matrix.hpp"

#include "base/check.hpp"

namespace gossamer::topology {

MixingMatrix::MixingMatrix(std::vector<std::vector<Neighbour>> rows)
    : hears_(std::move(rows)), heard_by_(hears_.size()), self_weights_(hears_.size(), 1) {
  for (int i = 0; i < peers(); ++i) {
    int last = -1;
    double sum = 0;
    for (const auto& [peer, weight] : hears(i)) {
      GOSSAMER_CHECK(peer > last && peer < peers() && peer != i && weight != 0, "a row is ascending, within n, without self");
      heard_by_[static_cast<std::size_t>(peer)].push_back(i);
      sum += weight;
      last = peer;
    }
    self_weights_[static_cast<std::size_t>(i)] = 1 - sum;
  }
}

const ParameterSet<WeightOptions>& weight_parameters() {
  static const auto set =
      ParameterSet<WeightOptions>()
          .add("weights", &WeightOptions::weights,
               {.help = "metropolis: 1/(1 + the larger degree of an edge's two ends); uniform: 1/(1 + the largest degree)",
                .choices = {"metropolis", "uniform"}})
          .add("lazy", &WeightOptions::lazy, {.help = "mix with (I + W)/2: no negative eigenvalues, half the gap or so"});
  return set;
}

std::string to_string(const WeightOptions& options) { return (options.lazy ? "lazy " : "") + options.weights; }

}  // namespace gossamer::topology
