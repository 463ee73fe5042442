// Asynchronous push-sum: waits for no peer and loses nothing. Peer j sends one running sum S_j, the
// total of what it has ever given; a receiver adds the difference to the S_j that it used last. The
// next message makes up for one that is lost, late or superseded, so sums and weights are
// conserved, including those under way: at any time, whatever round each peer is in,
//   Σ_i (x_i, w_i)  +  Σ_{j→i} W_ij (S_j − S_ij)   changes by the peers' own steps alone,
// because the account of each peer, (x_i, w_i) + Σ_k W_ki S_i − Σ_j W_ij S_ij, does. Under `sync`
// it is push_sum, to rounding; it is made for `async` and `stale`, on directed graphs too. x/w is a
// peer's model.
//
// Sums grow with the rounds, and float32 rounds them ever more coarsely: after 1e5 rounds to
// multiples of x/128. Each sum is kept in two rows, the rounded sum and the rounding error, which
// add up exactly; both are sent, so a message has 2(d + 1) values where push_sum's has d + 1. A
// peer also keeps the two rows of each in-neighbour's sum that it used last.
//
// A peer gives in every round in which it has enough weight, or in which all in-neighbours are in
// step with it, as they always are under `sync`. If rounds are shorter than messages take, or if
// the peers that would give back do not progress, it would otherwise give all of its weight away,
// and its steps γ/w would grow without bound. The longer it has not given, the less weight is
// enough, so that all peers give again when losses have left too little weight to all. A peer sends
// its sum in every round all the same, because the last message may have been lost.
//
// A lost peer takes with it what it has and what is under way to it: weights too, so no model is
// biased. But a smaller total weight makes steps longer, so each peer sets its weight to 1 some
// rounds later, and x to its model; the sums S stay, and what is under way is then added. The first
// sum received over a restored link only sets the reference, and nothing is given before the other
// end is known to receive, which under `async` may be long after. A peer announces its last round,
// and is given nothing more: it would keep the weight, and the weights of the peers that continue
// would tend to zero.
#include <fmt/format.h>

#include <algorithm>

#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"
#include "gossip/node/round_parts.hpp"

namespace gossamer::gossip::algorithms::async_push_sum {
namespace {

struct Options {
  int local_steps = 1;
};

/// Minimum weight, relative to a mean of 1, at which a peer gives. After kPatience rounds in which
/// it has not given the minimum falls in inverse proportion to their number.
constexpr float kEnough = 0.6F;
constexpr Round kPatience = 64;
/// The round since which a neighbour is present, before its first row in a resumed run.
constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

/// (x, w); S_i, and S_j as used last: each the d + 1 rounded values, then the rounding errors.
enum Row { kModel, kSum, kBefore, kGiven, kFirstUsed };

class AsyncPushSum final : public Algorithm {
 public:
  explicit AsyncPushSum(const Options& options) : steps_(options.local_steps) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule& schedule) const override {
    const auto w = schedule.at(0);  // of every round: check()
    std::size_t neighbours = 0;
    for (int i = 0; i < w->peers(); ++i)
      neighbours = std::max(neighbours, w->in_neighbours(i).size());
    const auto of_sums = [](std::string name) {
      return RowSpec{.name = std::move(name),
                     .rejoin = RowSpec::Rejoin::reinitialise_alone,
                     .extra = 2,
                     .extra_initial = 0,
                     .parts = 2};
    };
    std::vector<RowSpec> rows{{.name = "x", .initial = RowSpec::Initial::parameters},
                              {.name = "sum",
                               .initial = RowSpec::Initial::parameters,
                               .conserved_sum = true,
                               .rejoin = RowSpec::Rejoin::reinitialise,
                               .extra = 1},
                              {.name = "before", .survives = false, .extra = 1},
                              of_sums("given")};
    rows[kGiven].shared = true;
    for (std::size_t j = 0; j < neighbours; ++j)
      rows.push_back(of_sums(fmt::format("used of neighbour {}", j)));
    return rows;
  }
  AlgorithmRequirements requirements() const override {
    return {
        .stochastic = topology::Stochastic::columns, .averages = true, .tolerates_peer_loss = true};
  }
  int steps_per_round() const override { return steps_; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }
  std::vector<ExchangeVolume> communication(const topology::MixingSchedule&,
                                            const topology::MixingMatrix& w,
                                            std::size_t d) const override {
    return {neighbour_volume(w, 2 * (d + 1))};
  }

  /// κ, by neighbour: 1 + the round of the sum that was used last; 0 before the first. Then, by
  /// neighbour, the round since which it had taken part at that time. And the round in which this
  /// peer gave last.
  std::size_t counters(int i, const topology::MixingSchedule& schedule) const override {
    return 2 * schedule.at(0)->in_neighbours(i).size() + 1;
  }
  /// All links are up; of a link that was lost it is not known what the other end has given.
  void resume(int i, Round t, std::span<std::uint64_t> counters,
              const topology::MixingSchedule& schedule) const override {
    const std::size_t neighbours = schedule.at(0)->in_neighbours(i).size();
    for (std::size_t place = 0; place < neighbours; ++place)
      counters[neighbours + place] = counters[place] == t ? 0 : kUnknown;
  }

  Status check(const topology::MixingSchedule& schedule) const override {
    if (schedule.period() == 1) return {};
    return invalid_error(
        "topology.kind: 'async_push_sum' keeps a sum for every link, and the links of "
        "this topology change from round to "
        "round; choose one that stays (ring, exponential, torus), or push_sum");
  }

  // x ← x − γ ∇f_i(z; batch), z ← x/w, H times;  S ← S + (x, w), sent;  (x, w) ← (1 − Σ_k W_ki) (x,
  // w); (x, w) ← (x, w) + Σ_j W_ij (S_j − S_ij), S_ij ← S_j;  z ← x/w
  task<void> round(Node& node, Round t) const override {
    co_await push_sum_steps(node, kSum, steps_);
    std::uint64_t& gave = node.counters().back();
    if (gives(node, t, gave)) {
      co_await give(node, t);
      gave = t;
    }
    const std::vector<NeighbourRow> shared = co_await node.share(gave, kGiven);
    co_await receive_sums(node, t, shared);
    co_await divide_by_weight(node, kSum);
  }

  task<void> drain(Node& node) const override {
    node.announce_last_share(kGiven);
    co_return;
  }

 private:
  bool gives(Node& node, Round t, Round gave) const {
    const auto w = node.matrix(t);
    const auto in_neighbours = w->in_neighbours(node.id());
    std::size_t there = 0, in_step = 0;
    for (std::size_t place = 0; place < in_neighbours.size(); ++place) {
      if (!node.accepts_share(in_neighbours[place].peer, t)) continue;
      ++there;
      in_step += node.counters()[place] == t ? 1 : 0;
    }
    if (there > 0 && in_step == there)
      return true;  // without a look at the weight, for which a GPU would be waited for
    const float enough =
        kEnough * std::min(1.0F, static_cast<float>(kPatience) / static_cast<float>(t - gave + 1));
    return node.value(kSum, node.row(kSum).size() - 1) >= enough;
  }

  /// S ← S + (x, w), in two rows s + r: r ← r + (x, w);  s⁺ ← s + r;  r ← r − (s⁺ − s), exactly.
  /// Then (x, w) is what is kept.
  task<void> give(Node& node, Round t) const {
    const std::span<float> sum = node.row(kSum), before = node.row(kBefore),
                           given = node.row(kGiven);
    const std::span<float> s = given.first(sum.size()), r = given.subspan(sum.size());
    co_await node.sent(kGiven);
    co_await node.axpy(1.0F, sum, r);
    co_await node.copy(s, before);
    co_await node.axpy(1.0F, r, s);
    co_await node.add_difference(r, s, before, -1.0F);
    co_await node.scale(sum, share_kept(node, t));
  }

  /// Whether `receiver` uses what it is given in round t.
  bool gives_to(Node& node, int receiver, Round t) const {
    if (!node.accepts_share(receiver, t)) return false;
    const auto w = node.matrix(t);
    const auto in_neighbours = w->in_neighbours(node.id());
    const auto found = std::ranges::find(in_neighbours, receiver, &topology::Neighbour::peer);
    if (found == in_neighbours.end()) return true;  // its rounds are not known
    const auto place = static_cast<std::size_t>(found - in_neighbours.begin());
    const std::uint64_t last = node.counters()[place],
                        since = node.counters()[in_neighbours.size() + place];
    return since == node.present_since(receiver) && (since == 0 || last > since);
  }

  /// 1 − Σ_k W_ki, over the peers that use what they are given. Not W_ii: rounded weights do not
  /// add up to 1, and the difference would be lost in every round.
  float share_kept(Node& node, Round t) const {
    const auto w = node.matrix(t);
    double kept = 1;
    for (const int receiver : w->out_neighbours(node.id())) {
      if (!gives_to(node, receiver, t)) continue;
      const auto in_neighbours = w->in_neighbours(receiver);
      const auto ours = std::ranges::find(in_neighbours, node.id(), &topology::Neighbour::peer);
      kept -= static_cast<double>(static_cast<float>(ours->weight));
    }
    return static_cast<float>(kept);
  }

  task<void> receive_sums(Node& node, Round t, const std::vector<NeighbourRow>& shared) const {
    const std::span<float> sum = node.row(kSum);
    const auto w = node.matrix(t);
    const auto in_neighbours = w->in_neighbours(node.id());
    for (const NeighbourRow& theirs : shared) {
      const auto place = static_cast<std::size_t>(
          std::ranges::find(in_neighbours, theirs.from, &topology::Neighbour::peer) -
          in_neighbours.begin());
      std::uint64_t &last = node.counters()[place],
                    &since = node.counters()[in_neighbours.size() + place];
      const bool sets_reference = since != theirs.present_since;
      if (last == theirs.round + 1 && !sets_reference) continue;  // nothing has come since
      const std::span<float> used = node.row(kFirstUsed + static_cast<int>(place));
      for (std::size_t part = 0; part < used.size() && !sets_reference; part += sum.size())
        co_await node.add_difference(sum, theirs.values.subspan(part, sum.size()),
                                     used.subspan(part, sum.size()),
                                     static_cast<float>(in_neighbours[place].weight));
      co_await node.copy(theirs.values, used);
      last = theirs.round + 1;
      since = theirs.present_since;
    }
  }

  int steps_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters = ParameterSet<Options>().add(
      "local_steps", &Options::local_steps,
      {.help = "H: local steps in a round", .minimum = 1, .maximum = 1e6, .unit = "steps"});
  return {.name = "async_push_sum",
          .summary =
              "asynchronous push-sum with running sums: late or lost messages lose nothing; for "
              "the policies async and stale",
          .source = "Spiridonoff, Olshevsky and Paschalidis 2020, Alg. 3",
          .parameters = parameters.specs(),
          .make = make_with<AsyncPushSum>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::async_push_sum
