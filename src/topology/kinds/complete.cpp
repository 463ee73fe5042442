// Complete: every two peers are neighbours, and one round is the exact average. Every peer sends n
// − 1 rows for it.
#include <fmt/format.h>

#include "topology/building.hpp"

namespace gossamer::topology::kinds::complete {
namespace {

constexpr int kMostPeers = 8192;  // n² weights of 16 bytes: 1 GiB

}  // namespace

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "complete";
  kind.summary =
      "every two peers are neighbours: the exact average in one round, for n − 1 rows sent by each "
      "peer";
  kind.make = [](const TopologyContext& context,
                 const ParameterValues&) -> Result<std::unique_ptr<Topology>> {
    const int n = context.peers;
    if (n > kMostPeers)
      return cannot_build(
          "complete", n,
          fmt::format("its n² weights are held in memory, for up to {} peers", kMostPeers),
          [](int peers) { return peers <= kMostPeers; });
    Graph graph{std::vector<std::vector<int>>(static_cast<std::size_t>(n))};
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        if (j != i) graph.out[static_cast<std::size_t>(i)].push_back(j);
    return static_topology(std::move(graph), {n});
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::complete
