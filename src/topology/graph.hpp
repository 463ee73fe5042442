// Properties of a graph that do not depend on weights: symmetry, connectivity and diameter.
#pragma once

#include <optional>
#include <span>

#include "topology/kind.hpp"

namespace gossamer::topology {

/// An undirected edge between two different peers.
struct Edge {
  int a = 0, b = 0;
};

/// The graph of these undirected edges on peers 0..peers−1. A self-loop, a double edge or a peer
/// out of range is a bug.
Graph undirected_graph(int peers, std::span<const Edge> edges);

/// The graph with every edge reversed: out[i] of the result are the in-neighbours of i.
Graph reversed(const Graph& graph);

/// Every peer's in-neighbours are its out-neighbours.
bool is_symmetric(const Graph& graph);

/// All edges of all graphs, which have equal peers. At least one graph.
Graph union_of(std::span<const Graph> graphs);

/// Two peers without a path from `from` to `to`.
struct Unreachable {
  int from = 0, to = 0;
};

/// One pair that no path joins, or none when the graph is strongly connected. O(edges).
std::optional<Unreachable> find_unreachable(const Graph& graph);

inline constexpr double kMostSteps = 4e8;  // a few seconds

/// The longest shortest path, in hops.
struct Diameter {
  int hops = 0;
  bool exact = true;  ///< false: a lower bound; to know it exactly, too many peers would have to
                      ///< be looked from
};

/// None when the graph is not strongly connected; 0 for one peer. `alike`: from every peer the
/// graph looks the same, so one peer's view is enough. A symmetric graph's is mostly found from few
/// peers, a directed one's takes a look from each; after `most_steps` steps along an edge the
/// longest path so far is the answer.
std::optional<Diameter> diameter(const Graph& graph, bool alike = false,
                                 double most_steps = kMostSteps);

/// The edges of an undirected graph in matchings, at most one more than its largest degree; in a
/// matching, no peer has two edges. Memory is O(n²).
std::vector<std::vector<Edge>> matchings_of(const Graph& graph);

/// Directed edges.
std::int64_t count_edges(const Graph& graph);

}  // namespace gossamer::topology
