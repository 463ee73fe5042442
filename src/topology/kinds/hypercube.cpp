// Hypercube: peers are the corners of a cube of dimension log2 n; neighbours are peers whose number
// differs in one bit.
#include <bit>

#include "topology/building.hpp"

namespace gossamer::topology::kinds::hypercube {
namespace {

bool is_power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

}  // namespace

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "hypercube";
  kind.summary =
      "peers whose numbers differ in one bit are neighbours: degree and diameter log2 n; n a "
      "power of two";
  kind.make = [](const TopologyContext& context,
                 const ParameterValues&) -> Result<std::unique_ptr<Topology>> {
    const int n = context.peers;
    if (!is_power_of_two(n))
      return cannot_build("hypercube", n, "a cube's corners are a power of two", is_power_of_two);
    std::vector<Edge> edges;
    for (int i = 0; i < n; ++i)
      for (int bit = 1; bit < n; bit *= 2)
        if ((i & bit) == 0) edges.push_back({i, i | bit});
    const auto dimension = static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(n)));
    return static_topology(undirected_graph(n, edges), std::vector<int>(dimension, 2));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::hypercube
