// Path: a ring with one edge cut, the worst-connected graph that a person would still build.
#include "topology/building.hpp"

namespace gossamer::topology::kinds::path {

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "path";
  kind.summary =
      "a line of peers: each is a neighbour of the previous and of the next peer; the gap shrinks "
      "as 1/n²";
  kind.make = [](const TopologyContext& context,
                 const ParameterValues&) -> Result<std::unique_ptr<Topology>> {
    std::vector<Edge> edges;
    for (int i = 0; i + 1 < context.peers; ++i) edges.push_back({i, i + 1});
    return static_topology(undirected_graph(context.peers, edges));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::path
