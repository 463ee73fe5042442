#include "topology/mixing_matrix.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "topology/checks.hpp"
#include "topology/graph.hpp"

namespace gossamer::topology {

MixingMatrix::MixingMatrix(std::vector<std::vector<Neighbour>> rows, Diagonal diagonal)
    : in_neighbours_(std::move(rows)),
      out_neighbours_(in_neighbours_.size()),
      self_weights_(in_neighbours_.size(), 1),
      row_surplus_(in_neighbours_.size(), 0) {
  std::vector<long double> given(in_neighbours_.size(), 0),
      taken(in_neighbours_.size(), 0);  // long double: as the weights were made
  for (int i = 0; i < peers(); ++i) {
    int last = -1;
    for (const auto& [peer, weight] : in_neighbours(i)) {
      GOSSAMER_CHECK(peer > last && peer < peers() && peer != i,
                     "a row is ascending, within n, and without self");
      GOSSAMER_CHECK(weight != 0, "a row lists non-zero weights");
      out_neighbours_[static_cast<std::size_t>(peer)].push_back(i);
      taken[static_cast<std::size_t>(i)] += weight;
      given[static_cast<std::size_t>(peer)] += weight;
      last = peer;
    }
  }
  const bool by_column = diagonal == Diagonal::completes_column;
  for (std::size_t i = 0; i < in_neighbours_.size(); ++i) {
    self_weights_[i] = static_cast<double>(1 - (by_column ? given[i] : taken[i]));
    if (by_column) row_surplus_[i] = static_cast<double>(taken[i] - given[i]);
    const long double column_surplus = given[i] + self_weights_[i] - 1;
    if (std::max<long double>(std::abs(row_surplus_[i]), std::abs(column_surplus)) > kSumTolerance)
      doubly_stochastic_ = false;
  }
  symmetric_ = entries_are_mirrored();
}

// Going through the rows in order, the entries of column j come in the order of row j: a cursor a
// row finds for every entry the one across the diagonal.
bool MixingMatrix::entries_are_mirrored() const {
  std::vector<std::size_t> next(in_neighbours_.size(), 0);
  for (int i = 0; i < peers(); ++i)
    for (const auto& [j, weight] : in_neighbours(i)) {
      const auto mirrored = in_neighbours(j);
      const std::size_t at = next[static_cast<std::size_t>(j)]++;
      if (at == mirrored.size() || mirrored[at].peer != i || mirrored[at].weight != weight)
        return false;
    }
  return true;
}

Graph graph_of(const MixingMatrix& w) {
  Graph graph;
  for (int i = 0; i < w.peers(); ++i)
    graph.out.emplace_back(w.out_neighbours(i).begin(), w.out_neighbours(i).end());
  return graph;
}

const ParameterSet<WeightOptions>& weight_parameters() {
  static const auto set =
      ParameterSet<WeightOptions>()
          .add("weights", &WeightOptions::weights,
               {.help = "metropolis: 1/(1 + the larger degree of an edge's ends); uniform: 1/(1 + "
                        "the largest degree); best_constant: 2/(λ1 + λn−1) of the Laplacian; "
                        "out_degree: 1/(1 + the sender's out-degree), on any graph, for push_sum "
                        "and push_pull; in_degree: 1/(1 + the receiver's in-degree), on any "
                        "graph, for dpsgd, whose mean then moves; given: the weights that the "
                        "kind or its file prescribes; auto: given if there are any, else "
                        "metropolis (for push_sum and push_pull: out_degree; for epidemic with "
                        "local = true: in_degree)",
                .choices = {"auto", "metropolis", "uniform", "best_constant", "out_degree",
                            "in_degree", "given"}})
          .add("lazy", &WeightOptions::lazy,
               {.help = "mix with (I + W)/2: no negative eigenvalues, about half the gap"})
          .add("allow_negative", &WeightOptions::allow_negative,
               {.help = "accept a W in which a peer's weight of its own row is negative, as "
                        "best_constant weights and matcha can have; else it is refused"});
  return set;
}

bool is_undirected(const MixingSchedule& schedule) {
  if (schedule.period() == 0) return schedule.law().undirected;
  for (int t = 0; t < schedule.period(); ++t)
    if (!is_symmetric(graph_of(*schedule.at(static_cast<Round>(t))))) return false;
  return true;
}

Round sampled_rounds(int peers) {
  return std::clamp<Round>((Round{1} << 20) / static_cast<Round>(peers), 100, 1000);
}

std::string to_string(const WeightOptions& options) {
  return (options.lazy ? "lazy " : "") + options.weights;
}

}  // namespace gossamer::topology
