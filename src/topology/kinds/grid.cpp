// Grid: rows × cols peers, each with the two to four beside it as neighbours; a torus whose edges
// were cut.
#include "topology/building.hpp"

namespace gossamer::topology::kinds::grid {

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "grid";
  kind.summary =
      "rows × cols peers, each with the neighbours left, right, above and below; no wrap-around";
  kind.parameters = layout_parameters().specs();
  kind.make = [](const TopologyContext& context,
                 const ParameterValues& values) -> Result<std::unique_ptr<Topology>> {
    GOSSAMER_TRY(const LayoutOptions options, layout_parameters().read("topology", values));
    // A default side of 1 would make a path that a study takes for a grid; asked for
    // (rows = 1), it is built.
    const LayoutRule rule{.kind = "grid",
                          .minimum_side = 1,
                          .minimum_chosen_side = 2,
                          .why = "a grid of one row is a path (choose path, or say rows = 1)"};
    GOSSAMER_TRY(const Layout layout, choose_layout(rule, context.peers, options));
    std::vector<Edge> edges;
    for (int row = 0; row < layout.rows; ++row)
      for (int col = 0; col < layout.cols; ++col) {
        if (col + 1 < layout.cols)
          edges.push_back({layout.peer(row, col), layout.peer(row, col + 1)});
        if (row + 1 < layout.rows)
          edges.push_back({layout.peer(row, col), layout.peer(row + 1, col)});
      }
    return static_topology(undirected_graph(context.peers, edges));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::grid
