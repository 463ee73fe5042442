// Teleportation: k models wander over n peers. In each round the k peers that hold a model train
// it, the models are mixed on a graph of k places, and the mixed models go to k peers that are
// drawn anew. So the mixing is that of a small graph, however many peers there are, and the data of
// all of them are used. The optimizer's state stays with the peer.
//
// The peers of round t + 1 receive what those of round t send, so fetching and mixing are one
// exchange: the new holder of place b is sent the models of all places a with W[b,a] > 0. After the
// last round the holders give their models to the peers that have none, so that every peer ends
// with a model of the last round.
//
// A peer without a model learns nothing of the rounds that pass. It waits for the next model that
// it is sent, and then ends the rounds before at once: a peer that went ahead instead would be in
// the last round before the others have begun.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/id_list.hpp"
#include "base/philox.hpp"
#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::teleportation {
namespace {

struct Options {
  int active = 4;
  std::string graph = "exponential";
  int local_steps = 1;
};

/// kBase: the model of this peer's own place; kTheirs: one of another place.
enum Row { kX, kBase, kTheirs, kNext };

/// Peers by place that hold the models in round t.
std::vector<int> holders(int peers, int active, std::uint64_t seed, Round t) {
  std::map<int, int> moved;  // of the shuffled peers 0 … peers − 1, those that are not in place
  const auto at = [&moved](int index) {
    const auto found = moved.find(index);
    return found == moved.end() ? index : found->second;
  };
  std::vector<int> chosen;
  RandomStream random(seed, kNoPeer, Purpose::active_peers, t);
  for (int place = 0; place < active; ++place) {
    const auto left = static_cast<std::uint32_t>(peers - place);
    const int other = place + static_cast<int>(random.below(left));
    chosen.push_back(at(other));
    moved[other] = at(place);
  }
  return chosen;
}

std::optional<int> place_of(int peer, const std::vector<int>& holders) {
  const auto found = std::ranges::find(holders, peer);
  if (found == holders.end()) return std::nullopt;
  return static_cast<int>(found - holders.begin());
}

class Teleportation final : public Algorithm {
 public:
  Teleportation(const Options& options, std::unique_ptr<topology::MixingSchedule> places)
      : steps_(options.local_steps), places_(std::move(places)) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x", .initial = RowSpec::Initial::parameters},
            {.name = "base", .survives = false},
            {.name = "theirs", .survives = false},
            {.name = "next", .survives = false}};
  }
  AlgorithmRequirements requirements() const override {
    return {.mixing_matrix = false, .bounded_lead = false, .lockstep = false};
  }
  int steps_per_round() const override { return steps_; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    std::vector<int> others = first_ids(schedule.peers());
    std::erase(others, i);
    return others;
  }
  /// The number of rounds done.
  std::size_t counters(int, const topology::MixingSchedule&) const override { return 1; }

  Status check(const topology::MixingSchedule& schedule) const override {
    if (active() <= schedule.peers()) return {};
    return invalid_error(
        fmt::format("algorithm.active: {} of {} peers cannot be active; choose at most {}",
                    active(), schedule.peers(), schedule.peers()));
  }

  bool holds_model(int i, Round rounds, const topology::MixingSchedule& schedule,
                   std::uint64_t seed) const override {
    return place_of(i, holders(schedule.peers(), active(), seed, rounds)).has_value();
  }

  /// The expectation: a peer holds a model in k/n of the rounds, and one of n receivers is itself.
  std::vector<ExchangeVolume> communication(const topology::MixingSchedule&,
                                            const topology::MixingMatrix& w,
                                            std::size_t d) const override {
    if (w.peers() == 1) return {};
    std::size_t messages = 0;
    const auto period = static_cast<Round>(places_->period());
    for (Round t = 0; t < period; ++t)
      for (int place = 0; place < active(); ++place)
        messages += 1 + places_->at(t)->in_neighbours(place).size();
    const double n = w.peers();
    const auto values = static_cast<std::uint64_t>(
        std::llround(static_cast<double>(messages) / static_cast<double>(places_->period()) / n *
                     (1 - 1 / n) * static_cast<double>(d)));
    return {{.message = d, .of = [=](int) { return NodeVolume{values, values}; }}};
  }

  // of the holder of place a: y_a ← x − γ ∇f(x; batch), H times;  of the next holder of place b:
  // x ← Σ_a W[b,a] y_a
  task<void> round(Node& node, Round t) const override {
    const std::vector<int> now = holders_of(node, t), next = holders_of(node, t + 1);
    const std::shared_ptr<const topology::MixingMatrix> w = places_->at(t);
    const auto mine = place_of(node.id(), now), place = place_of(node.id(), next);
    if (mine) {
      co_await node.local_steps(node.x(), steps_);
      send(node, t, *mine, next, *w);
    } else {
      while (!node.peek_any(kX) && !node.peek_any(kBase)) co_await node.wait_event();
    }
    if (place) co_await receive(node, t, *place, now, *w);
    node.counters()[0] = t + 1;
  }

  /// The holders give their models to the peers that have none.
  task<void> drain(Node& node) const override {
    const Round t = node.counters()[0];
    const std::vector<int> now = holders_of(node, t);
    const auto mine = place_of(node.id(), now);
    int receivers = 0;
    for (int peer = 0; peer < node.peers(); ++peer) {
      if (place_of(peer, now)) continue;
      const int place = receivers++ % active();
      if (mine == place) node.send_copy(peer, t, kBase, node.x());
      if (peer == node.id())
        co_await node.receive(now[static_cast<std::size_t>(place)], t, kBase, node.x(),
                              Combine::replace);
    }
  }

 private:
  int active() const { return places_->peers(); }
  std::vector<int> holders_of(const Node& node, Round t) const {
    return holders(node.peers(), active(), node.seed(), t);
  }

  void send(Node& node, Round t, int mine, const std::vector<int>& next,
            const topology::MixingMatrix& w) const {
    for (int place = 0; place < active(); ++place) {
      const int receiver = next[static_cast<std::size_t>(place)];
      const bool takes = place == mine || std::ranges::binary_search(w.out_neighbours(mine), place);
      if (takes && receiver != node.id()) node.send_copy(receiver, t, kX, node.x());
    }
  }

  task<void> receive(Node& node, Round t, int place, const std::vector<int>& now,
                     const topology::MixingMatrix& w) const {
    const std::span<float> base = node.row(kBase), theirs = node.row(kTheirs),
                           next = node.row(kNext);
    co_await take(node, t, now[static_cast<std::size_t>(place)], base);
    co_await node.copy(base, next);
    for (const topology::Neighbour& from : w.in_neighbours(place)) {
      co_await take(node, t, now[static_cast<std::size_t>(from.peer)], theirs);
      co_await node.add_difference(next, theirs, base, static_cast<float>(from.weight));
    }
    co_await node.copy(next, node.x());
  }

  /// into ← the model that `holder` has trained.
  static task<void> take(Node& node, Round t, int holder, std::span<float> into) {
    if (holder == node.id()) co_await node.copy(node.x(), into);
    else co_await node.receive(holder, t, kX, into, Combine::replace);
  }

  int steps_;
  std::unique_ptr<topology::MixingSchedule> places_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>()
          .add("active", &Options::active,
               {.help = "k: models, and peers that train in a round",
                .minimum = 1,
                .maximum = topology::kMaximumPeers})
          .add("graph", &Options::graph,
               {.help = "on which the k models are mixed",
                .choices = {"ring", "complete", "exponential", "one_peer_exponential", "base"}})
          .add(
              "local_steps", &Options::local_steps,
              {.help = "H: local steps in a round", .minimum = 1, .maximum = 1e6, .unit = "steps"});
  return {
      .name = "teleportation",
      .summary =
          "Teleportation: k models, mixed on a small graph, wander over the peers; any peer may "
          "send to any other, on every topology",
      .source = "Takezawa and Stich 2025, Alg. 1",
      .parameters = parameters.specs(),
      .make = [](const ParameterValues& values) -> Result<std::unique_ptr<Algorithm>> {
        GOSSAMER_TRY(const Options options, parameters.read("algorithm", values));
        topology::ScheduleRequest request{
            .kind = options.graph, .values = {}, .weights = {}, .context = {options.active}};
        GOSSAMER_TRY(auto places, topology::make_schedule(request));
        return std::unique_ptr<Algorithm>(
            std::make_unique<Teleportation>(options, std::move(places)));
      }};
}

}  // namespace gossamer::gossip::algorithms::teleportation
