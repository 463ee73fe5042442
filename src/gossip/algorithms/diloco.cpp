// DiLoCo: many local steps with the run's optimizer, then one outer step of all peers with the mean
// way that they have gone, by Nesterov's momentum. All peers have the same model after it, to
// rounding: the mean is taken of the models, so what rounding parts is drawn together again in the
// next round.
#include <fmt/format.h>

#include <cmath>

#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"
#include "topology/checks.hpp"

namespace gossamer::gossip::algorithms::diloco {
namespace {

struct Options {
  int local_steps = 500;
  double outer_rate = 0.7;
  double outer_momentum = 0.9;
};

enum Row { kX, kMomentum, kAnchor };

class DiLoCo final : public Algorithm {
 public:
  explicit DiLoCo(const Options& options)
      : steps_(options.local_steps), rate_(options.outer_rate), momentum_(options.outer_momentum) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x", .mixed = true, .initial = RowSpec::Initial::parameters},
            {.name = "outer_momentum"},
            {.name = "anchor", .survives = false}};
  }
  AlgorithmRequirements requirements() const override { return {.synchronous = true}; }
  int steps_per_round() const override { return steps_; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  Status check(const topology::MixingSchedule& schedule) const override {
    const auto w = schedule.at(0);
    const int n = w->peers();
    bool exact = schedule.period() == 1;
    for (int i = 0; exact && i < n; ++i) {
      exact = static_cast<int>(w->in_neighbours(i).size()) == n - 1;
      for (const topology::Neighbour& entry : w->in_neighbours(i))
        exact = exact && std::abs(entry.weight - 1.0 / n) <= topology::kSumTolerance;
    }
    if (exact) return {};
    return invalid_error(
        "topology.kind: 'diloco' takes the mean of all peers in every round, which this W does not "
        "give; choose "
        "complete with metropolis weights that are not lazy, or noloco on random_matching");
  }

  // φ ← x;  x ← x after H local steps;  Δ ← φ − mean(x);  v ← μ v + Δ;  x ← φ − η (Δ + μ v)
  task<void> round(Node& node, Round t) const override {
    const std::span<float> anchor = node.row(kAnchor), v = node.row(kMomentum);
    co_await node.copy(node.x(), anchor);
    co_await node.local_steps(node.x(), steps_);
    co_await node.mix(t, kX);
    const std::span<float> x = node.x();
    co_await node.axpy(-1.0F, anchor, x);  // −Δ
    co_await node.scale(v, static_cast<float>(momentum_));
    co_await node.axpy(-1.0F, x, v);
    co_await node.axpy(static_cast<float>(rate_), x, anchor);
    co_await node.axpy(static_cast<float>(-rate_ * momentum_), v, anchor);
    co_await node.copy(anchor, x);
  }

 private:
  int steps_;
  double rate_, momentum_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>()
          .add("local_steps", &Options::local_steps,
               {.help = "H: local steps in a round", .minimum = 1, .maximum = 1e6, .unit = "steps"})
          .add("outer_rate", &Options::outer_rate,
               {.help = "η of the outer step", .minimum = 0, .maximum = 10})
          .add("outer_momentum", &Options::outer_momentum,
               {.help = "μ of the outer step, by Nesterov", .minimum = 0, .maximum = 0.9999});
  return {.name = "diloco",
          .summary =
              "DiLoCo: many local steps, then an outer Nesterov step with the mean of all peers; "
              "on the complete graph",
          .source = "Douillard et al. 2023, Alg. 1",
          .parameters = parameters.specs(),
          .make = make_with<DiLoCo>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::diloco
