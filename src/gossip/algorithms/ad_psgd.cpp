// AD-PSGD: each peer takes gradients at its own pace, and once in a round, while it computes, it
// averages with one random neighbour; the sum of its steps is added to x when they are done. No
// peer waits for another one's gradient.
//
// Peers are coloured so that neighbours differ, and a peer sends questions to neighbours of higher
// colours only. A question is x; the neighbour averages, and answers with the average, so both have
// the same bits. A peer that waits for an answer lets others wait for its own, because two averages
// would be mixed up otherwise; a peer that computes answers at once. So waits lead from lower
// colours to higher ones only, never in a circle, and the peers of the highest colour never wait.
// On a bipartite graph two colours are enough: they are the paper's active and passive peers. On
// other graphs a peer waits for as many answers as there are colours at most.
//
// The model of a peer is final after its last round. It sends a parting message to the neighbours
// that may ask it; until each has answered that it asks no more, or has finished itself, the peer
// answers with the asker's own x.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/philox.hpp"
#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"
#include "topology/graph.hpp"

namespace gossamer::gossip::algorithms::ad_psgd {
namespace {

struct Options {
  int local_steps = 1;
};

/// Questions are sent as kX, answers as kTheirs, parting messages as the gradient row.
enum Row { kX, kLocal, kBefore, kTheirs };

/// Each peer in the order of distance from peer 0 takes the lowest colour that no neighbour has:
/// two on a bipartite graph.
std::vector<int> colours(const topology::MixingMatrix& graph) {
  constexpr int kNone = -1, kNext = -2;
  std::vector<int> colour(static_cast<std::size_t>(graph.peers()), kNone), order{0};
  for (std::size_t k = 0; k < order.size(); ++k) {
    std::vector<int> taken;
    for (const int j : graph.out_neighbours(order[k])) {
      int& theirs = colour[static_cast<std::size_t>(j)];
      if (theirs == kNone) order.push_back(j), theirs = kNext;
      taken.push_back(theirs);
    }
    int& mine = colour[static_cast<std::size_t>(order[k])];
    for (mine = 0; std::ranges::find(taken, mine) != taken.end();) ++mine;
  }
  return colour;
}

/// A node's counters: its colour, its neighbours' colours, and for each of them whether the two
/// have parted.
struct Neighbours {
  Neighbours(Node& node, std::span<const int> peers_in)
      : peers(peers_in),
        own(node.counters()[0]),
        colour(node.counters().subspan(1, peers.size())),
        parted(node.counters().subspan(1 + peers.size())) {}
  std::span<const int> peers;
  std::uint64_t& own;  ///< 1 + the colour; 0: not known yet
  std::span<std::uint64_t> colour, parted;

  bool may_be_asked(std::size_t k) const { return colour[k] > own; }
  std::size_t place(int peer) const {
    return static_cast<std::size_t>(std::ranges::find(peers, peer) - peers.begin());
  }
  /// Whether all neighbours that may ask this peer have parted from it.
  bool unasked() const {
    for (std::size_t k = 0; k < peers.size(); ++k)
      if (!may_be_asked(k) && parted[k] == 0) return false;
    return true;
  }
};

class AdPsgd final : public Algorithm {
 public:
  explicit AdPsgd(const Options& options) : steps_(options.local_steps) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x", .initial = RowSpec::Initial::parameters},
            {.name = "local", .survives = false},
            {.name = "before", .survives = false},
            {.name = "theirs", .survives = false}};
  }
  AlgorithmRequirements requirements() const override {
    return {.mixing_matrix = false, .averages = true, .bounded_lead = false, .lockstep = false};
  }
  int steps_per_round() const override { return steps_; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  std::size_t counters(int i, const topology::MixingSchedule& schedule) const override {
    return 1 + 2 * schedule.at(0)->out_neighbours(i).size();
  }
  void resume(int, Round, std::span<std::uint64_t> counters,
              const topology::MixingSchedule&) const override {
    std::ranges::fill(counters, 0);
  }

  Status check(const topology::MixingSchedule& schedule) const override {
    const char* what = schedule.period() != 1 ? "changes from round to round"
                       : !topology::is_symmetric(topology::graph_of(*schedule.at(0)))
                           ? "is directed"
                           : nullptr;
    if (what == nullptr) return {};
    return invalid_error(fmt::format(
        "topology.kind: 'ad_psgd' averages pairs of neighbours, and this graph {}; choose an "
        "undirected one that stays (ring, torus, hypercube, random_regular), or "
        "async_push_sum for a directed one",
        what));
  }

  /// One question per round of each peer that has a neighbour to ask; the number of questions to a
  /// peer is its expectation.
  std::vector<ExchangeVolume> communication(const topology::MixingSchedule&,
                                            const topology::MixingMatrix& w,
                                            std::size_t d) const override {
    const std::vector<int> colour = colours(w);
    std::vector<double> asks(colour.size()), asked(colour.size());
    for (std::size_t i = 0; i < colour.size(); ++i) {
      std::vector<int> higher;
      for (const int j : w.out_neighbours(static_cast<int>(i)))
        if (colour[static_cast<std::size_t>(j)] > colour[i]) higher.push_back(j);
      if (!higher.empty()) asks[i] = 1;
      for (const int j : higher)
        asked[static_cast<std::size_t>(j)] += 1.0 / static_cast<double>(higher.size());
    }
    return {{.message = d,
             .of =
                 [=](int i) {
                   const auto k = static_cast<std::size_t>(i);
                   const auto values = static_cast<std::uint64_t>(
                       std::llround((asks[k] + asked[k]) * static_cast<double>(d)));
                   return NodeVolume{values, values};
                 },
             .beside_training = true}};
  }

  // u ← x after H local steps; meanwhile, with j a random neighbour, x, x_j ← (x + x_j)/2, and
  // questions are answered; x ← x + (u − x before)
  task<void> round(Node& node, Round t) const override {
    const auto w = node.matrix(t);
    Neighbours neighbours(node, w->out_neighbours(node.id()));
    if (neighbours.own == 0) learn_colours(node, neighbours, *w);
    const std::span<float> x = node.x(), u = node.row(kLocal), before = node.row(kBefore);
    // First, the questions that arrived while this peer waited itself: if answers take longer than
    // steps, it always does. Each neighbour asks once.
    for (std::size_t k = 0; k < neighbours.peers.size() && node.peek_any(kX); ++k)
      co_await answer(node, true);
    co_await node.copy(x, before);
    co_await node.copy(x, u);
    const std::optional<int> partner = choose(node, t, neighbours);
    if (partner) node.send_copy(*partner, t, kX, x);
    bool waits = partner.has_value();
    node.begin_local_steps(u, steps_);
    co_await node.training_handed_over();
    while (waits || node.local_steps_running()) {
      if (node.peek_any(kGradientRow)) {
        co_await receive_parting(node, neighbours);
      } else if (waits && node.peek_any(kTheirs)) {
        co_await node.receive(*partner, t, kTheirs, x, Combine::replace);
        waits = false;
      } else if (!waits && node.peek_any(kX)) {
        co_await answer(node, true);
      } else {
        co_await node.wait_event(waits ? partner : std::nullopt);
      }
    }
    co_await node.add_difference(x, u, before);
  }

  task<void> drain(Node& node) const override {
    const auto w = node.matrix(0);
    Neighbours neighbours(node, w->out_neighbours(node.id()));
    if (neighbours.own == 0) learn_colours(node, neighbours, *w);
    for (std::size_t k = 0; k < neighbours.peers.size(); ++k)
      if (!neighbours.may_be_asked(k) || neighbours.parted[k] == 0) part_from(node, neighbours, k);
    while (!neighbours.unasked() || node.peek_any(kX)) {
      if (node.peek_any(kX)) co_await answer(node, false);
      else if (node.peek_any(kGradientRow)) co_await receive_parting(node, neighbours);
      else co_await node.wait_event();
    }
    std::ranges::fill(neighbours.parted, 0);
  }

 private:
  void learn_colours(Node& node, Neighbours& neighbours, const topology::MixingMatrix& w) const {
    const std::vector<int> colour = colours(w);
    const auto of = [&](int peer) {
      return 1 + static_cast<std::uint64_t>(colour[static_cast<std::size_t>(peer)]);
    };
    neighbours.own = of(node.id());
    for (std::size_t k = 0; k < neighbours.peers.size(); ++k)
      neighbours.colour[k] = of(neighbours.peers[k]);
  }

  /// A neighbour to ask, if there is one left.
  std::optional<int> choose(Node& node, Round t, const Neighbours& neighbours) const {
    std::vector<int> candidates;
    for (std::size_t k = 0; k < neighbours.peers.size(); ++k)
      if (neighbours.may_be_asked(k) && neighbours.parted[k] == 0)
        candidates.push_back(neighbours.peers[k]);
    if (candidates.empty()) return std::nullopt;
    RandomStream random(node.seed(), static_cast<std::uint32_t>(node.id()), Purpose::topology, t);
    return candidates[random.below(static_cast<std::uint32_t>(candidates.size()))];
  }

  /// The next question: x ← (x + theirs)/2, which is the answer; or theirs, where x is final.
  task<void> answer(Node& node, bool averages) const {
    const std::span<float> x = node.x(), theirs = node.row(kTheirs);
    const MessageOrigin question = co_await node.receive_any(kX, theirs, Combine::replace);
    if (averages) {
      co_await node.scale(x, 0.5F);
      co_await node.axpy(0.5F, theirs, x);
    }
    node.send_copy(question.from, question.round, kTheirs, averages ? x : theirs);
  }

  /// Sends a parting message: to a neighbour of a higher colour, this peer asks no more; to one of
  /// a lower colour, this peer has finished.
  void part_from(Node& node, Neighbours& neighbours, std::size_t k) const {
    if (neighbours.may_be_asked(k)) neighbours.parted[k] = 1;
    node.send_copy(neighbours.peers[k], 0, kGradientRow, node.x().first(1));
  }

  task<void> receive_parting(Node& node, Neighbours& neighbours) const {
    const MessageOrigin word =
        co_await node.receive_any(kGradientRow, node.row(kTheirs).first(1), Combine::replace);
    const std::size_t k = neighbours.place(word.from);
    if (!neighbours.may_be_asked(k)) neighbours.parted[k] = 1;
    else if (neighbours.parted[k] == 0) part_from(node, neighbours, k);
  }

  int steps_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters = ParameterSet<Options>().add(
      "local_steps", &Options::local_steps,
      {.help = "H: local steps in a round", .minimum = 1, .maximum = 1e6, .unit = "steps"});
  return {.name = "ad_psgd",
          .summary =
              "AD-PSGD, asynchronous D-PSGD: each peer computes gradients at its own pace and "
              "averages with one neighbour at a time; undirected graphs",
          .source = "Lian, Zhang, Zhang and Liu 2018, Alg. 1",
          .parameters = parameters.specs(),
          .make = make_with<AdPsgd>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::ad_psgd
