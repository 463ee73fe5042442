// Star: everything goes through peer 0. What a server would be, were it one of the peers.
#include "topology/building.hpp"

namespace gossamer::topology::kinds::star {

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "star";
  kind.summary =
      "peer 0 is the only neighbour of every other peer; diameter 2, yet the gap is only 1/n";
  kind.make = [](const TopologyContext& context,
                 const ParameterValues&) -> Result<std::unique_ptr<Topology>> {
    std::vector<Edge> edges;
    for (int leaf = 1; leaf < context.peers; ++leaf) edges.push_back({0, leaf});
    return static_topology(undirected_graph(context.peers, edges));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::star
