// Binary tree: the fewest edges that connect all peers in few hops. What is far apart meets in the
// root alone: gap 1/n or so.
#include "topology/building.hpp"

namespace gossamer::topology::kinds::binary_tree {

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "binary_tree";
  kind.summary =
      "peer i's children are 2i + 1 and 2i + 2: diameter 2 log2 n with n − 1 edges; the gap "
      "shrinks as 1/n";
  kind.make = [](const TopologyContext& context,
                 const ParameterValues&) -> Result<std::unique_ptr<Topology>> {
    std::vector<Edge> edges;
    for (int child = 1; child < context.peers; ++child) edges.push_back({(child - 1) / 2, child});
    return static_topology(undirected_graph(context.peers, edges));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::binary_tree
