// CHOCO-SGD: D-PSGD with messages of any codec. Each peer keeps an estimate x̂ of every row it
// receives and of its own, as its neighbours know it; what travels is the coded difference of x
// from its estimate, so what a message leaves out is part of the next one (error feedback), and
// every copy of an estimate has the same bits.
//
// One estimate a neighbour, as Algorithm 2 has it, and not their weighted sum alone (the
// memory-efficient form of Koloskova et al. 2020): a running sum of float32 keeps every rounding
// error it has ever made, and its sum over the peers would push the mean away in every round.
// Differences of estimates are exactly 0 at consensus.
#include <fmt/format.h>

#include <algorithm>

#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::choco {
namespace {

struct Options {
  double consensus_rate = 0.1;
  int local_steps = 1;
};

enum Row { kX, kEstimate, kFirstNeighbour };

class Choco final : public Algorithm {
 public:
  explicit Choco(const Options& options)
      : rate_(options.consensus_rate), steps_(options.local_steps) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule& schedule) const override {
    const auto w = schedule.at(0);  // of every round: fixed_matrix
    std::size_t neighbours = 0;
    for (int i = 0; i < w->peers(); ++i)
      neighbours = std::max(neighbours, w->in_neighbours(i).size());
    std::vector<RowSpec> rows{{.name = "x", .initial = RowSpec::Initial::parameters},
                              {.name = "estimate", .rejoin = RowSpec::Rejoin::reinitialise}};
    for (std::size_t j = 0; j < neighbours; ++j)
      rows.push_back({.name = fmt::format("estimate of neighbour {}", j),
                      .rejoin = RowSpec::Rejoin::reinitialise});
    return rows;
  }
  AlgorithmRequirements requirements() const override {
    return {
        .fixed_matrix = true, .synchronous = true, .averages = true, .codec = Fidelity::partial};
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

  // x ← x − γ ∇f(x; batch), H times;  q = C(x − x̂), sent;  x̂_j ← x̂_j + q_j, its own too;
  // x ← x + γ_c Σ_j W[i,j] (x̂_j − x̂)
  task<void> round(Node& node, Round t) const override {
    const std::span<float> x = node.x(), own = node.row(kEstimate),
                           difference = node.row(kGradientRow);
    co_await node.local_steps(x, steps_);
    co_await node.fill(difference, 0.0F);
    co_await node.add_difference(difference, x, own);
    co_await node.send_coded(t, kGradientRow, own);
    const auto w = node.matrix(t);
    int k = kFirstNeighbour;
    for (const topology::Neighbour& j : w->in_neighbours(node.id())) {
      const std::span<float> theirs = node.row(k++);
      co_await node.receive_coded(j.peer, t, kGradientRow, theirs);
      co_await node.add_difference(x, theirs, own, static_cast<float>(rate_ * j.weight));
    }
  }

 private:
  double rate_;
  int steps_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>()
          .add("consensus_rate", &Options::consensus_rate,
               {.help = "γ_c: step size towards the neighbours' estimates. The run diverges if it "
                        "is too large for the codec: on a ring of 16 with fraction 0.1, 0.4 is "
                        "stable with topk and 0.1 with randk; smaller fractions and sparser graphs "
                        "need smaller values",
                .minimum = 0,
                .maximum = 1,
                .minimum_excluded = true})
          .add(
              "local_steps", &Options::local_steps,
              {.help = "H: local steps in a round", .minimum = 1, .maximum = 1e6, .unit = "steps"});
  return {.name = "choco",
          .summary =
              "CHOCO-SGD: mixes encoded messages with error feedback, with every codec; needs a "
              "static symmetric W",
          .source = "Koloskova, Stich and Jaggi 2019, Alg. 2; Koloskova et al. 2020",
          .parameters = parameters.specs(),
          .make = make_with<Choco>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::choco
