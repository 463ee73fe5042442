// Static exponential graph: in every round, the in-neighbours of a peer are all those that it has
// in turn in the one-peer exponential graph.
#include <algorithm>

#include "topology/building.hpp"

namespace gossamer::topology::kinds::exponential {

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "exponential";
  kind.summary =
      "the in-neighbours of a peer are the peers 1, 2, 4, … before it: degree ⌈log2 n⌉, gap 2/(1 + "
      "⌈log2 n⌉) for even n; directed";
  kind.source = "Ying et al. 2021 (arXiv:2110.13363)";
  // The in-neighbours of peer i are (i − 2^j) mod n, j = 0..⌈log2 n⌉ − 1. With weights 1/(1 + ⌈log2
  // n⌉) throughout, the gap for even n is 2/(1 + ⌈log2 n⌉) (Ying et al., Proposition 1), and for
  // odd n it is wider.
  kind.make = [](const TopologyContext& context,
                 const ParameterValues&) -> Result<std::unique_ptr<Topology>> {
    const int n = context.peers;
    Graph graph{std::vector<std::vector<int>>(static_cast<std::size_t>(n))};
    for (int i = 0; i < n; ++i) {
      auto& out = graph.out[static_cast<std::size_t>(i)];
      for (int shift = 1; shift < n; shift *= 2) out.push_back((i + shift) % n);
      std::sort(out.begin(), out.end());
    }
    return static_topology(std::move(graph), {n});
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::exponential
