// Torus: a grid whose rows and columns are rings, so every peer has four neighbours and no peer is
// at an edge.
#include "topology/building.hpp"

namespace gossamer::topology::kinds::torus {

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "torus";
  kind.summary =
      "rows × cols peers, where every row and column is a ring: degree 4 everywhere; the gap "
      "shrinks as 1/n";
  kind.parameters = layout_parameters().specs();
  kind.make = [](const TopologyContext& context,
                 const ParameterValues& values) -> Result<std::unique_ptr<Topology>> {
    GOSSAMER_TRY(const LayoutOptions options, layout_parameters().read("topology", values));
    // With a side of 2 the wrap-around edge doubles the grid's own; with a side of 1 it is a
    // self-loop. Either way degrees are no longer 4, and what was built would not be what "torus"
    // means in a paper.
    const LayoutRule rule{.kind = "torus",
                          .minimum_side = 3,
                          .minimum_chosen_side = 3,
                          .why =
                              "both sides must be at least 3, or wrap-around edges fall on others "
                              "(choose grid or ring)"};
    GOSSAMER_TRY(const Layout layout, choose_layout(rule, context.peers, options));
    std::vector<Edge> edges;
    if (context.peers == 1) return static_topology(undirected_graph(1, edges));
    for (int row = 0; row < layout.rows; ++row)
      for (int col = 0; col < layout.cols; ++col) {
        edges.push_back({layout.peer(row, col), layout.peer(row, (col + 1) % layout.cols)});
        edges.push_back({layout.peer(row, col), layout.peer((row + 1) % layout.rows, col)});
      }
    return static_topology(undirected_graph(context.peers, edges), {layout.rows, layout.cols});
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::torus
