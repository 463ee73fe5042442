// Dumbbell: two cliques and a single edge between them. Every peer has half the network as
// neighbours, and the halves hardly agree: the graph on which degree and diameter say nothing, and
// the gap, about 4/n² · 2, everything.
#include <fmt/format.h>

#include "topology/building.hpp"

namespace gossamer::topology::kinds::dumbbell {
namespace {

constexpr int kMostPeers = 8192;  // n²/2 weights of 16 bytes: 512 MiB

}  // namespace

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "dumbbell";
  kind.summary = "two cliques of n/2 peers joined by one edge: diameter 3, and a gap of about 8/n²";
  kind.make = [](const TopologyContext& context,
                 const ParameterValues&) -> Result<std::unique_ptr<Topology>> {
    const int n = context.peers, middle = n / 2;
    if (n > kMostPeers)
      return cannot_build(
          "dumbbell", n,
          fmt::format("its n²/2 weights are held in memory, for up to {} peers", kMostPeers),
          [](int peers) { return peers <= kMostPeers; });
    std::vector<Edge> edges;
    for (int i = 0; i < n; ++i)
      for (int j = i + 1; j < (i < middle ? middle : n); ++j) edges.push_back({i, j});
    if (n > 1) edges.push_back({middle - 1, middle});
    return static_topology(undirected_graph(n, edges));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::dumbbell
