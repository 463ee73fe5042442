// Helpers of the files of kinds/: static and periodic topologies, and the error for an unsuitable
// number of peers.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/philox.hpp"
#include "topology/graph.hpp"

namespace gossamer::topology {

/// The topology that is this graph in every round. lattice: as Topology::lattice().
std::unique_ptr<Topology> static_topology(Graph graph, std::vector<int> lattice = {});

/// An undirected edge and its weight: W[a][b] = W[b][a].
struct WeightedEdge {
  int a = 0, b = 0;
  double weight = 0;
};

/// The periodic topology with exactly these edges and weights, one list for each round of the
/// period; at least one round. Each edge is listed once in a round, and its weight is positive.
std::unique_ptr<Topology> weighted_topology(int peers,
                                            const std::vector<std::vector<WeightedEdge>>& rounds);

/// The static topology with these weights, directed or not: rows complete, as WeightRows are.
std::unique_ptr<Topology> weighted_topology(WeightRows rows, std::vector<int> lattice = {});

/// a_1, …, a_M in 1..n−1, n ≥ 2, uniform, with replacement; drawn again until with n they have no
/// common factor, without which a network of these circular shifts would fall apart. The draws are
/// rounds 0, 1, … of the stream of Purpose::topology, a few of them.
std::vector<int> draw_shifts(int n, int m, std::uint64_t seed);

/// Whether a graph of n peers with `degree` neighbours each exists.
bool regular_exists(int n, int degree);

/// One that exists, random; perhaps not connected. A graph that is dense is drawn by the edges that
/// it lacks. Empty (no peers) where the draw came to no graph, which is rare: draw again.
Graph draw_regular(int n, int degree, RandomStream& random);

/// The error (invalid) of a kind that cannot be built for `peers`:
///   "topology torus cannot be built for 14 peers: <why>; n = 12 or n = 15 works"
/// with the nearest n > 1 below and above that `works` accepts (none is named when none
/// of 2..kMaximumPeers works).
Error cannot_build(const std::string& kind, int peers, const std::string& why,
                   const std::function<bool(int)>& works);

/// How torus and grid lay their peers out. 0: chosen for the number of peers.
struct LayoutOptions {
  int rows = 0;
  int cols = 0;
};
const ParameterSet<LayoutOptions>& layout_parameters();

/// A kind's minimum for the shorter side of a layout.
struct LayoutRule {
  std::string kind;
  int minimum_side = 1;         ///< always
  int minimum_chosen_side = 1;  ///< where neither rows nor cols were given
  std::string why;              ///< the consequence of a shorter side, for the error message
};

struct Layout {
  int rows = 1;
  int cols = 1;
  /// Peers are numbered along the rows.
  int peer(int row, int col) const { return row * cols + col; }
};

/// rows × cols = peers, both sides at least as long as `rule` requires. Where neither is given,
/// rows is the largest divisor of peers up to its square root: the squarest layout there is. One
/// peer is 1 × 1. The error (invalid) names workable n.
Result<Layout> choose_layout(const LayoutRule& rule, int peers, const LayoutOptions& options);

}  // namespace gossamer::topology
