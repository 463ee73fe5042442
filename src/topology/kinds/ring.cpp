// Ring: the neighbours of a peer are the one before and the one after. Two peers are one edge, not
// two.
#include "topology/building.hpp"

namespace gossamer::topology::kinds::ring {

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "ring";
  kind.summary = "each peer and its two neighbours on a circle; the gap shrinks as 1/n²";
  kind.make = [](const TopologyContext& context,
                 const ParameterValues&) -> Result<std::unique_ptr<Topology>> {
    const int n = context.peers;
    std::vector<Edge> edges;
    for (int i = 0; i + 1 < n; ++i) edges.push_back({i, i + 1});
    if (n > 2) edges.push_back({n - 1, 0});
    return static_topology(undirected_graph(n, edges), {n});
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::ring
