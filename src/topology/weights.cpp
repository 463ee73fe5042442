#include "topology/weights.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::topology {
namespace {

int degree(const Graph& graph, int i) { return static_cast<int>(graph.out[static_cast<std::size_t>(i)].size()); }

int largest_degree(const Graph& graph) {
  int largest = 0;
  for (int i = 0; i < graph.peers(); ++i) largest = std::max(largest, degree(graph, i));
  return largest;
}

Status balanced(const Graph& hears, const Graph& heard_by) {
  for (int i = 0; i < hears.peers(); ++i)
    if (degree(hears, i) != degree(heard_by, i))
      return Error{ErrorKind::invalid,
                   fmt::format("no weights for this directed graph: peer {} hears {} and is heard by {}; columns sum "
                               "to 1 only where the two are equal for every peer",
                               i, degree(hears, i), degree(heard_by, i))};
  return {};
}

Status regular(const Graph& hears) {
  for (int i = 1; i < hears.peers(); ++i)
    if (degree(hears, i) != degree(hears, 0))
      return Error{ErrorKind::invalid,
                   fmt::format("no metropolis weights for this directed graph: peer 0 hears {} and peer {} hears {}; "
                               "they exist for undirected graphs, and for directed ones where all hear equally many "
                               "(weights = \"uniform\" asks only that each peer hears as many as hear it)",
                               degree(hears, 0), i, degree(hears, i))};
  return {};
}

/// Row i with these off-diagonal weights, and on the diagonal what is missing to 1. Summed in long double: in double, the
/// centre of a star of 65,356 would be 1.8e-12 from 1, more than the checks allow.
std::vector<Neighbour> complete_row(int i, std::vector<Neighbour> others) {
  long double sum = 0;
  for (const Neighbour& other : others) sum += other.weight;
  const auto place = std::find_if(others.begin(), others.end(), [i](const Neighbour& other) { return other.peer > i; });
  others.insert(place, {i, static_cast<double>(1 - sum)});
  return others;
}

}  // namespace

Result<WeightRows> weigh(const Graph& graph, const WeightOptions& options) {
  const bool metropolis = options.weights == "metropolis";
  if (!metropolis && options.weights != "uniform")
    return Error{ErrorKind::invalid,
                 fmt::format("topology.weights: '{}' is not one of metropolis, uniform", options.weights)};
  const Graph hears = reversed(graph);
  GOSSAMER_TRY_STATUS(balanced(hears, graph));
  if (metropolis && !is_symmetric(graph)) GOSSAMER_TRY_STATUS(regular(hears));

  const int largest = largest_degree(hears);
  const double share = options.lazy ? 0.5 : 1.0;  // lazy is (I + W)/2
  WeightRows rows;
  rows.reserve(hears.out.size());
  for (int i = 0; i < hears.peers(); ++i) {
    std::vector<Neighbour> others;
    others.reserve(hears.out[static_cast<std::size_t>(i)].size() + 1);
    for (const int j : hears.out[static_cast<std::size_t>(i)]) {
      const int d = metropolis ? std::max(degree(hears, i), degree(hears, j)) : largest;
      others.push_back({j, share / (1 + d)});
    }
    rows.push_back(complete_row(i, std::move(others)));
  }
  return rows;
}

}  // namespace gossamer::topology
