// Random matching: in each round every peer is paired with one other, drawn anew, and pairs
// average. One row sent a round.
#include <numeric>

#include "base/philox.hpp"
#include "topology/building.hpp"

namespace gossamer::topology::kinds::random_matching {
namespace {

class RandomMatching final : public Topology {
 public:
  explicit RandomMatching(const TopologyContext& context)
      : peers_(context.peers), seed_(context.seed) {}

  int peers() const override { return peers_; }
  int period() const override { return 0; }

  /// Peers in a random order; the first and second are a pair, the third and fourth, …; of an odd
  /// number the last one rests.
  Graph graph(Round t) const override {
    std::vector<std::uint32_t> order(static_cast<std::size_t>(peers_));
    std::iota(order.begin(), order.end(), 0U);
    RandomStream(seed_, kNoPeer, Purpose::topology, t).shuffle(order);
    Graph graph{std::vector<std::vector<int>>(order.size())};
    for (std::size_t i = 0; i + 1 < order.size(); i += 2) {
      graph.out[order[i]] = {static_cast<int>(order[i + 1])};
      graph.out[order[i + 1]] = {static_cast<int>(order[i])};
    }
    return graph;
  }

 private:
  int peers_;
  std::uint64_t seed_;
};

}  // namespace

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "random_matching";
  kind.summary =
      "each round pairs all peers at random, and each pair averages: one neighbour per round; the "
      "expected squared consensus distance is about halved";
  kind.source = "Boyd, Ghosh, Prabhakar, Shah 2006 (all pairs at once)";
  kind.make = [](const TopologyContext& context,
                 const ParameterValues&) -> Result<std::unique_ptr<Topology>> {
    return std::unique_ptr<Topology>(std::make_unique<RandomMatching>(context));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::random_matching
