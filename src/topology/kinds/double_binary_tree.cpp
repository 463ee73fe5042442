// Double binary trees: two binary trees over the same peers, so laid that an inner peer of one is a
// leaf of the other. Reductions use both at once, at half the data each; gossip mixes along both.
#include <algorithm>

#include "topology/building.hpp"

namespace gossamer::topology::kinds::double_binary_tree {
namespace {

/// Parent of peer i > 0 in the tree of in-order numbering with root 0: with b the lowest bit of i,
/// i with b taken out and 2b put in; where that is no peer, i without b. Odd peers are leaves.
int parent_of(int i, int peers) {
  const int lowest = i & -i;
  const int up = (i ^ lowest) | (lowest << 1);
  return up < peers ? up : i ^ lowest;
}

}  // namespace

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "double_binary_tree";
  kind.summary =
      "two binary trees at once, where an inner peer of one tree is a leaf of the other: at most 4 "
      "neighbours, O(log n) hops";
  kind.source = "Sanders, Speck, Träff 2009 (Parallel Computing 35); layout as in NCCL 2.4";
  kind.make = [](const TopologyContext& context,
                 const ParameterValues&) -> Result<std::unique_ptr<Topology>> {
    const int n = context.peers;
    // The second tree is the first in a mirror (n even), or one place on (n odd), so that odd
    // places change with even ones.
    const auto in_second = [n](int place) { return n % 2 == 0 ? n - 1 - place : (place + 1) % n; };
    std::vector<Edge> edges;
    for (int i = 1; i < n; ++i) {
      const int parent = parent_of(i, n);
      edges.push_back({std::min(i, parent), std::max(i, parent)});
      edges.push_back(
          {std::min(in_second(i), in_second(parent)), std::max(in_second(i), in_second(parent))});
    }
    // An edge of both trees is one.
    std::sort(edges.begin(), edges.end(), [](const Edge& x, const Edge& y) {
      return std::pair(x.a, x.b) < std::pair(y.a, y.b);
    });
    const auto same = [](const Edge& x, const Edge& y) { return x.a == y.a && x.b == y.b; };
    edges.erase(std::unique(edges.begin(), edges.end(), same), edges.end());
    return static_topology(undirected_graph(n, edges));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::double_binary_tree
