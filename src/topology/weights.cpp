#include "topology/weights.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "topology/spectrum.hpp"

namespace gossamer::topology {
namespace {

int degree(const Graph& graph, int i) {
  return static_cast<int>(graph.out[static_cast<std::size_t>(i)].size());
}

int largest_degree(const Graph& graph) {
  int largest = 0;
  for (int i = 0; i < graph.peers(); ++i) largest = std::max(largest, degree(graph, i));
  return largest;
}

Status balanced(const Graph& in_neighbours, const Graph& out_neighbours) {
  for (int i = 0; i < in_neighbours.peers(); ++i)
    if (degree(in_neighbours, i) != degree(out_neighbours, i))
      return invalid_error(
          fmt::format("no weights for this directed graph: peer {} has {} in-neighbours and {} "
                      "out-neighbours; rows and columns sum "
                      "to 1 only where the two are equal for every peer (algorithm "
                      "push_sum or push_pull with topology.weights = "
                      "out_degree takes any strongly connected graph)",
                      i, degree(in_neighbours, i), degree(out_neighbours, i)));
  return {};
}

Status regular(const Graph& in_neighbours) {
  for (int i = 1; i < in_neighbours.peers(); ++i)
    if (degree(in_neighbours, i) != degree(in_neighbours, 0))
      return invalid_error(fmt::format(
          "no metropolis weights for this directed graph: peer 0 has {} in-neighbours and "
          "peer {} has {}; "
          "they exist for undirected graphs, and for directed ones where all in-degrees are "
          "equal (weights = \"uniform\" asks only that each peer's in-degree is its "
          "out-degree)",
          degree(in_neighbours, 0), i, degree(in_neighbours, i)));
  return {};
}

/// Every edge weighs `weight_of(i, j)`, and row i is completed by its diagonal.
template <class WeightOf>
WeightRows weigh_edges(const Graph& in_neighbours, WeightOf weight_of) {
  WeightRows rows;
  rows.reserve(in_neighbours.out.size());
  for (int i = 0; i < in_neighbours.peers(); ++i) {
    std::vector<Neighbour> others;
    others.reserve(in_neighbours.out[static_cast<std::size_t>(i)].size() + 1);
    for (const int j : in_neighbours.out[static_cast<std::size_t>(i)])
      others.push_back({j, weight_of(i, j)});
    rows.push_back(complete_row(i, std::move(others)));
  }
  return rows;
}

/// Every peer gives 1/(1 + h) of its row to each of its h out-neighbours, and keeps as much:
/// columns sum to 1.
WeightRows weigh_by_out_degree(const Graph& graph, double share) {
  WeightRows rows(graph.out.size());
  for (int j = 0; j < graph.peers(); ++j) {  // ascending, so every row is
    const double weight = share / (1 + degree(graph, j));
    for (const int i : graph.out[static_cast<std::size_t>(j)])
      rows[static_cast<std::size_t>(i)].push_back({j, weight});
    rows[static_cast<std::size_t>(j)].push_back({j, 1 - weight * degree(graph, j)});
  }
  return rows;
}

Error no_best_constant(const std::string& why) {
  return {ErrorKind::invalid, "no best constant weights: " + why};
}

/// The constant weight with the smallest ρ(W − 11ᵀ/n): where I − εL contracts both ends of L's
/// spectrum alike, at ε = 2/(λ1 + λn−1) (Xiao and Boyd 2004, "Fast linear iterations for
/// distributed averaging", eq. 21).
Result<double> best_constant(const Graph& graph, std::span<const int> lattice) {
  if (!is_symmetric(graph))
    return no_best_constant("the graph is directed (choose metropolis or uniform)");
  if (graph.peers() == 1) return 0.0;
  if (find_unreachable(graph))
    return no_best_constant("they are of a graph that is connected in every round");
  // M = I − L/(1 + Δ) has L's eigenvalues, turned and scaled into (−1, 1].
  const double scale = 1 + largest_degree(graph);
  WeightRows rows = weigh_edges(graph, [&](int, int) { return 1 / scale; });
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::erase_if(rows[i],
                  [i](const Neighbour& entry) { return entry.peer == static_cast<int>(i); });
  const auto ends = symmetric_ends(MixingMatrix(std::move(rows)), lattice);
  if (!ends)
    return no_best_constant(
        "the ends of this graph's spectrum are too costly to find (choose metropolis)");
  double epsilon = 2 / (scale * (1 - ends->low) + scale * (1 - ends->high));
  const int largest = largest_degree(graph);
  if (std::abs(1 - epsilon * largest) < 1e-11)
    epsilon = 1.0 / largest;  // a path's is 1/2: no −1e−16 on the diagonal
  return epsilon;
}

}  // namespace

// Summed in long double: in double, the centre of a star of 65,356 would be 1.8e-12 from 1, more
// than the checks allow.
std::vector<Neighbour> complete_row(int i, std::vector<Neighbour> others) {
  long double sum = 0;
  for (const Neighbour& other : others) sum += other.weight;
  const auto place = std::find_if(others.begin(), others.end(),
                                  [i](const Neighbour& other) { return other.peer > i; });
  others.insert(place, {i, static_cast<double>(1 - sum)});
  return others;
}

Result<WeightRows> weigh(const Graph& graph, const WeightOptions& options,
                         std::span<const int> lattice) {
  const double share = options.lazy ? 0.5 : 1.0;  // lazy is (I + W)/2
  if (options.weights == "best_constant") {
    GOSSAMER_TRY(const double epsilon, best_constant(graph, lattice));
    const auto fullest =
        std::max_element(graph.out.begin(), graph.out.end(),
                         [](const auto& a, const auto& b) { return a.size() < b.size(); });
    const double self = 1 - share * epsilon * static_cast<double>(fullest->size());
    if (self < 0 && !options.allow_negative)
      return no_best_constant(fmt::format(
          "peer {} would keep {:.3g} of its own row (choose metropolis{}, or set "
          "topology.allow_negative = true to accept a negative weight)",
          fullest - graph.out.begin(), self, options.lazy ? "" : ", lazy best_constant"));
    return weigh_edges(graph, [&](int, int) { return share * epsilon; });
  }
  if (options.only_columns()) return weigh_by_out_degree(graph, share);
  const bool metropolis = options.weights == "metropolis" || options.weights == "auto";
  if (!metropolis && !options.only_rows() && options.weights != "uniform")
    return invalid_error(
        fmt::format("topology.weights: '{}' is not one of auto, metropolis, uniform, "
                    "best_constant, out_degree, in_degree, given",
                    options.weights));
  const bool symmetric = is_symmetric(graph);
  const Graph turned = symmetric ? Graph{} : reversed(graph);
  const Graph& in_neighbours = symmetric ? graph : turned;
  if (options.only_rows())
    return weigh_edges(in_neighbours,
                       [&](int i, int) { return share / (1 + degree(in_neighbours, i)); });
  if (!symmetric) {
    GOSSAMER_TRY_STATUS(balanced(in_neighbours, graph));
    if (metropolis) GOSSAMER_TRY_STATUS(regular(in_neighbours));
  }
  const int largest = largest_degree(in_neighbours);
  return weigh_edges(in_neighbours, [&](int i, int j) {
    return share / (1 + (metropolis ? std::max(degree(in_neighbours, i), degree(in_neighbours, j))
                                    : largest));
  });
}

Result<WeightRows> weigh_round(const Topology& topology, const Graph& graph, Round t,
                               const WeightOptions& options) {
  if (options.weights != "given" && options.weights != "auto")
    return weigh(graph, options, topology.lattice());
  std::optional<WeightRows> own = topology.weights(t);
  if (!own && options.weights == "auto") return weigh(graph, options, topology.lattice());
  if (!own)
    return invalid_error(
        "topology.weights: 'given', but none are: this topology prescribes no weights (choose "
        "metropolis, uniform or best_constant)");
  if (options.lazy)
    for (std::size_t i = 0; i < own->size(); ++i)
      for (Neighbour& entry : (*own)[i])
        entry.weight = (entry.weight + (entry.peer == static_cast<int>(i) ? 1 : 0)) / 2;
  return std::move(*own);
}

WeightOptions resolve(const Topology& topology, const WeightOptions& options) {
  WeightOptions resolved = options;
  if (options.weights == "auto")
    resolved.weights = topology.weights(0)                 ? "given"
                       : options.automatic == "metropolis" ? topology.automatic()
                                                           : options.automatic;
  return resolved;
}

}  // namespace gossamer::topology
