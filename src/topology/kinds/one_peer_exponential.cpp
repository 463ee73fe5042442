// One-peer exponential graph: in round t every peer has one in-neighbour, 2^(t mod ⌈log2 n⌉) places
// before. Each W_t is doubly stochastic though not symmetric, and for n a power of two a whole
// period is the exact average.
#include <bit>

#include "topology/building.hpp"

namespace gossamer::topology::kinds::one_peer_exponential {
namespace {

class OnePeerExponential final : public Topology {
 public:
  explicit OnePeerExponential(int peers) : peers_(peers) {}

  int peers() const override { return peers_; }
  int period() const override {
    return peers_ < 3 ? 1 : std::bit_width(static_cast<unsigned>(peers_ - 1));
  }  // ⌈log2 n⌉

  std::vector<int> lattice() const override { return {peers_}; }

  /// The in-neighbour of peer i is (i − 2^(t mod τ)) mod n, with weight ½ (Ying et al. 2021, Assran
  /// et al. 2019).
  Graph graph(Round t) const override {
    Graph graph{std::vector<std::vector<int>>(static_cast<std::size_t>(peers_))};
    if (peers_ == 1) return graph;
    const int shift =
        1 << (t % static_cast<Round>(period()));  // < n, so no peer is its own neighbour
    for (int i = 0; i < peers_; ++i)
      graph.out[static_cast<std::size_t>(i)] = {(i + shift) % peers_};
    return graph;
  }

 private:
  int peers_;
};

}  // namespace

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "one_peer_exponential";
  kind.summary =
      "in round t the in-neighbour of a peer is the peer 2^(t mod ⌈log2 n⌉) before it; the exact "
      "average after a period if n = 2^k";
  kind.source = "Assran et al. 2019 (arXiv:1811.10792); Ying et al. 2021 (arXiv:2110.13363)";
  kind.make = [](const TopologyContext& context,
                 const ParameterValues&) -> Result<std::unique_ptr<Topology>> {
    return std::unique_ptr<Topology>(std::make_unique<OnePeerExponential>(context.peers));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::one_peer_exponential
