#include "topology/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gossamer::topology {
namespace {

Error failed(Round round, const char* check, const std::string& what) {
  return {ErrorKind::invalid,
          fmt::format("mixing matrix of round {}: {} check failed: {}", round, check, what)};
}

/// Whether there is an edge, asked for `to` that never descend: a cursor a peer is enough.
class Edges {
 public:
  explicit Edges(const Graph& graph) : graph_(graph), next_(graph.out.size(), 0) {}
  bool has(int from, int to) {
    const auto& out = graph_.out[static_cast<std::size_t>(from)];
    std::size_t& at = next_[static_cast<std::size_t>(from)];
    while (at < out.size() && out[at] < to) ++at;
    return at < out.size() && out[at] == to;
  }

 private:
  const Graph& graph_;
  std::vector<std::size_t> next_;
};

Status check_shape(const WeightRows& w, const Graph& graph, Round round) {
  if (w.size() != graph.out.size())
    return failed(round, "shape", fmt::format("{} rows for {} peers", w.size(), graph.peers()));
  for (std::size_t i = 0; i < w.size(); ++i) {
    int last = -1;
    for (const Neighbour& entry : w[i]) {
      if (entry.peer < 0 || entry.peer >= graph.peers())
        return failed(round, "shape",
                      fmt::format("row {} names peer {} of {}", i, entry.peer, graph.peers()));
      if (entry.peer <= last)
        return failed(round, "shape",
                      fmt::format("row {} has peer {} after peer {}", i, entry.peer, last));
      last = entry.peer;
    }
  }
  return {};
}

Status check_entry(int i, const Neighbour& entry, Edges& edges, Round round, bool allow_negative) {
  if (entry.peer != i && entry.weight != 0 && !edges.has(entry.peer, i))
    return failed(round, "support",
                  fmt::format("W[{}][{}] = {}, and peer {} is no in-neighbour of peer {}", i,
                              entry.peer, entry.weight, entry.peer, i));
  const bool own = entry.peer == i;
  if (!std::isfinite(entry.weight) || (entry.weight < 0 && !(own && allow_negative)))
    return failed(round, "entries",
                  fmt::format("W[{}][{}] = {} is not a weight ≥ 0{}", i, entry.peer, entry.weight,
                              own && std::isfinite(entry.weight)
                                  ? " (topology.allow_negative = true accepts a negative weight "
                                    "of a peer's own row)"
                                  : ""));
  return {};
}

// The sums are taken in long double: the check is of the weights, not of the order in which a check
// would round.
Status check_sums(const std::vector<long double>& sums, const char* check, Round round,
                  const char* advice) {
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (!(std::abs(sums[i] - 1) <= kSumTolerance))
      return failed(round, check,
                    fmt::format("that of peer {} is 1 {:+.3g}, more than {} from 1{}", i,
                                static_cast<double>(sums[i] - 1), kSumTolerance, advice));
  return {};
}

}  // namespace

Status check_round(const WeightRows& w, const Graph& graph, Round round,
                   const WeightOptions& options) {
  GOSSAMER_TRY_STATUS(check_shape(w, graph, round));
  std::vector<long double> row_sums(w.size(), 0), column_sums(w.size(), 0);
  Edges edges(graph);
  for (std::size_t i = 0; i < w.size(); ++i)
    for (const Neighbour& entry : w[i]) {
      GOSSAMER_TRY_STATUS(
          check_entry(static_cast<int>(i), entry, edges, round, options.allow_negative));
      row_sums[i] += entry.weight;
      column_sums[static_cast<std::size_t>(entry.peer)] += entry.weight;
    }
  if (!options.only_columns()) GOSSAMER_TRY_STATUS(check_sums(row_sums, "row sum", round, ""));
  if (options.only_rows()) return {};
  return check_sums(column_sums, "column sum", round,
                    " (algorithm push_sum or push_pull with topology.weights = out_degree takes "
                    "any strongly "
                    "connected graph)");
}

Status check_jointly_connected(std::span<const WeightRows> rounds) {
  std::vector<Graph> graphs;
  for (const WeightRows& w : rounds) {
    Graph graph{std::vector<std::vector<int>>(w.size())};
    for (std::size_t i = 0; i < w.size(); ++i)
      graph.out[i].reserve(w[i].size());  // most out-degrees equal the in-degree
    for (std::size_t i = 0; i < w.size(); ++i)
      for (const Neighbour& entry : w[i])
        if (entry.weight != 0 && entry.peer != static_cast<int>(i))
          graph.out[static_cast<std::size_t>(entry.peer)].push_back(static_cast<int>(i));
    graphs.push_back(std::move(graph));
  }
  if (graphs.size() != 1) graphs = {union_of(graphs)};
  if (const auto pair = find_unreachable(graphs.front()))
    return invalid_error(
        fmt::format("mixing matrices: joint connectivity check failed: over {} round(s), "
                    "the row of peer {} never reaches peer {}, so the network cannot "
                    "reach consensus; add edges between them",
                    rounds.size(), pair->from, pair->to));
  return {};
}

}  // namespace gossamer::topology
