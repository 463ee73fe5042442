// RelaySGD: on a tree every model reaches every peer, uniformly weighted, after as many rounds as
// it has hops to go: a neighbour's message is the sum of the models behind it, each a round older
// for every hop.
//
// The counters of the paper's Algorithm 1, with which a peer divides while the first models are
// still on their way, do not travel: what has come to peer i by round t are the models of all
// within t + 1 hops, which every peer computes from the tree.
#include <algorithm>

#include <fmt/format.h>

#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"
#include "topology/graph.hpp"

namespace gossamer::gossip::algorithms::relay_sgd {
namespace {

struct Options {
  int local_steps = 1;
};

/// The last message from a peer's k-th neighbour, ascending, and the one to it.
constexpr int from(int k) { return 1 + 2 * k; }
constexpr int to(int k) { return 2 + 2 * k; }

/// Peers at most `hops` away from peer i, itself included.
int peers_within(const topology::MixingMatrix& tree, int i, Round hops) {
  struct Reached {
    int peer, by;
  };
  std::vector<Reached> last{{i, i}}, next;
  std::size_t count = 1;
  for (Round hop = 0; hop < hops && !last.empty(); ++hop, last.swap(next)) {
    next.clear();
    for (const Reached& reached : last)
      for (const int j : tree.out_neighbours(reached.peer))
        if (j != reached.by) next.push_back({j, reached.peer});
    count += next.size();
  }
  return static_cast<int>(count);
}

/// Which of peer j's neighbours i is.
int place_of(int i, int j, const topology::MixingMatrix& tree) {
  const auto neighbours = tree.out_neighbours(j);
  return static_cast<int>(std::lower_bound(neighbours.begin(), neighbours.end(), i) -
                          neighbours.begin());
}

class RelaySgd final : public Algorithm {
 public:
  explicit RelaySgd(const Options& options) : steps_(options.local_steps) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule& schedule) const override {
    std::vector<RowSpec> rows{{.name = "x", .initial = RowSpec::Initial::parameters}};
    const auto tree = schedule.at(0);
    std::size_t degree = 0;
    for (int i = 0; i < tree->peers(); ++i)
      degree = std::max(degree, tree->out_neighbours(i).size());
    for (std::size_t k = 0; k < degree; ++k) {
      rows.push_back({.name = fmt::format("from_{}", k), .rejoin = RowSpec::Rejoin::reinitialise});
      rows.push_back({.name = fmt::format("to_{}", k), .survives = false});
    }
    return rows;
  }
  AlgorithmRequirements requirements() const override {
    return {.mixing_matrix = false, .averages = true};
  }
  int steps_per_round() const override { return steps_; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  std::vector<ExchangeVolume> communication(const topology::MixingSchedule&,
                                            const topology::MixingMatrix& w,
                                            std::size_t d) const override {
    return {neighbour_volume(w, d)};
  }

  Status check(const topology::MixingSchedule& schedule) const override {
    const topology::Graph graph = topology::graph_of(*schedule.at(0));
    const std::int64_t edges = topology::count_edges(graph) / 2, n = schedule.peers();
    std::string what;
    if (schedule.period() != 1) what = "changes from round to round";
    else if (!topology::is_symmetric(graph)) what = "is directed";
    else if (edges != n - 1)
      what = fmt::format("has {} edges, where a tree of {} peers has {}", edges, n, n - 1);
    else return {};
    return invalid_error(
        fmt::format("topology.kind: 'relay_sgd' relays along a tree, and this graph {}; choose "
                    "path, star, binary_tree "
                    "or a tree in a file, or an algorithm for any graph (dpsgd, gradient_tracking)",
                    what));
  }

  // x ← x after H local steps;  m_ij ← x + Σ_{k≠j} m_ki (of the round before), to every neighbour
  // j, and their m_ji here; x ← (x + Σ_j m_ji) / n_i,  n_i the models that are in it
  task<void> round(Node& node, Round t) const override {
    const auto tree = node.matrix(t);
    const std::span<const int> neighbours = tree->out_neighbours(node.id());
    const int degree = static_cast<int>(neighbours.size());
    const std::span<float> x = node.x();
    co_await node.local_steps(x, steps_);
    co_await write_messages(node, degree);
    for (int k = 0; k < degree; ++k)
      node.send(neighbours[static_cast<std::size_t>(k)], t, to(k), node.row(to(k)));
    for (int k = 0; k < degree; ++k) {
      const int j = neighbours[static_cast<std::size_t>(k)];
      co_await node.receive(j, t, to(place_of(node.id(), j, *tree)), node.row(from(k)),
                            Combine::replace);
    }
    for (int k = 0; k < degree; ++k) co_await node.axpy(1.0F, node.row(from(k)), x);
    co_await node.scale(x, 1.0F / static_cast<float>(peers_within(*tree, node.id(), t + 1)));
    for (int k = 0; k < degree; ++k) co_await node.sent(to(k));
  }

 private:
  /// to(j) ← x + Σ_{k<j} from(k), and then + Σ_{k>j} from(k): for the centre of a star, as many
  /// additions as neighbours.
  task<void> write_messages(Node& node, int degree) const {
    for (int j = 0; j < degree; ++j) {
      const std::span<const float> before = j == 0 ? node.x() : node.row(to(j - 1));
      co_await node.copy(before, node.row(to(j)));
      if (j > 0) co_await node.axpy(1.0F, node.row(from(j - 1)), node.row(to(j)));
    }
    const std::span<float> later = node.row(kGradientRow);
    co_await node.fill(later, 0.0F);
    for (int j = degree - 1; j > 0; --j) {
      co_await node.axpy(1.0F, node.row(from(j)), later);
      co_await node.axpy(1.0F, later, node.row(to(j - 1)));
    }
  }

  int steps_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters = ParameterSet<Options>().add(
      "local_steps", &Options::local_steps,
      {.help = "H: local steps in a round", .minimum = 1, .maximum = 1e6, .unit = "steps"});
  return {.name = "relay_sgd",
          .summary =
              "RelaySGD: on a tree, the exact mean of all peers' models, each delayed by one round "
              "per hop",
          .source = "Vogels et al. 2021, Alg. 1",
          .parameters = parameters.specs(),
          .make = make_with<RelaySgd>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::relay_sgd
