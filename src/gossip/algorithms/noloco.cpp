// NoLoCo: DiLoCo without a mean of all. After its local steps every peer is paired with another
// one, and the outer step goes the pair's mean way, with a term that pulls the pair together.
//
// Kolehmainen et al. 2025, eq. 2, with the signs of the authors' program, whose outer step goes the
// way of the local steps: φ is the model that a round began with, θ the one after its local steps,
// and means are over the pair,
//   δ ← α δ + β mean(θ − φ) + γ (mean(φ) − φ);  φ ← φ + δ.
// Both means are one: with u = φ + (β/γ)(θ − φ) it is δ ← α δ + γ (mean(u) − φ). One row travels
// where the program sends two, and a pair that agrees stays exactly where it is.
#include <fmt/format.h>

#include <algorithm>

#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::noloco {
namespace {

struct Options {
  int local_steps = 50;
  double outer_rate = 0.7;
  double outer_momentum = 0.5;
  double pull = 0.7;
};

enum Row { kX, kMomentum, kAnchor };

class NoLoCo final : public Algorithm {
 public:
  explicit NoLoCo(const Options& options) : options_(options) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x", .mixed = true, .initial = RowSpec::Initial::parameters},
            {.name = "outer_momentum"},
            {.name = "anchor", .survives = false}};
  }
  AlgorithmRequirements requirements() const override { return {.synchronous = true}; }
  int steps_per_round() const override { return options_.local_steps; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  /// Pairs that average, in every round; a peer that is left over is a pair of its own.
  Status check(const topology::MixingSchedule& schedule) const override {
    constexpr Round kLooked = 100;  // of a random sequence, which is alike in every round
    const Round rounds = schedule.period() > 0 ? static_cast<Round>(schedule.period()) : kLooked;
    for (Round t = 0; t < rounds; ++t) {
      const auto w = schedule.at(t);
      for (int i = 0; i < w->peers(); ++i) {
        const auto in_neighbours = w->in_neighbours(i);
        const auto out_neighbours = w->out_neighbours(i);
        const bool alone = in_neighbours.empty() && out_neighbours.empty();
        const bool pair = in_neighbours.size() == 1 && out_neighbours.size() == 1 &&
                          in_neighbours[0].peer == out_neighbours[0] &&
                          in_neighbours[0].weight == 0.5;
        if (alone || pair) continue;
        return invalid_error(
            fmt::format("topology.kind: 'noloco' averages pairs, and in round {} of this "
                        "topology peer {} is in none "
                        "that does; choose random_matching with weights that are not "
                        "lazy, or an algorithm for any "
                        "graph (dpsgd)",
                        t, i));
      }
    }
    return {};
  }

  task<void> round(Node& node, Round t) const override {
    const std::span<float> anchor = node.row(kAnchor), v = node.row(kMomentum);
    const auto pull = static_cast<float>(options_.pull);
    co_await node.copy(node.x(), anchor);
    co_await node.local_steps(node.x(), options_.local_steps);
    co_await stretch(node.x(), anchor, node);
    co_await node.mix(t, kX);
    const std::span<float> x = node.x();
    co_await node.axpy(-1.0F, anchor, x);
    co_await node.scale(v, static_cast<float>(options_.outer_momentum));
    co_await node.axpy(pull, x, v);
    co_await node.copy(anchor, x);
    co_await node.axpy(1.0F, v, x);
  }

 private:
  /// θ ← φ + (β/γ)(θ − φ)
  task<void> stretch(std::span<float> theta, std::span<const float> phi, Node& node) const {
    if (options_.outer_rate == options_.pull) co_return;
    co_await node.axpy(-1.0F, phi, theta);
    co_await node.scale(theta, static_cast<float>(options_.outer_rate / options_.pull));
    co_await node.axpy(1.0F, phi, theta);
  }

  Options options_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>()
          .add("local_steps", &Options::local_steps,
               {.help = "H: local steps in a round", .minimum = 1, .maximum = 1e6, .unit = "steps"})
          .add("outer_rate", &Options::outer_rate,
               {.help = "β of the outer step", .minimum = 0, .maximum = 10})
          .add("outer_momentum", &Options::outer_momentum,
               {.help = "α of the outer step", .minimum = 0, .maximum = 0.9999})
          .add("pull", &Options::pull,
               {.help = "γ: step size of each peer towards the mean of its pair",
                .minimum = 0.001,
                .maximum = 3});
  return {.name = "noloco",
          .summary =
              "NoLoCo: DiLoCo in pairs, with an outer momentum that pulls each pair together; on "
              "random matchings",
          .source = "Kolehmainen et al. 2025, eq. 2",
          .parameters = parameters.specs(),
          .make = make_with<NoLoCo>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::noloco
