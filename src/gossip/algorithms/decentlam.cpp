// DecentLaM: momentum SGD on the way that a round of D-PSGD goes, mixing included, in place of the
// peer's own gradient. Its fixed point is that of D-PSGD without momentum; with a momentum of the
// peers' own gradients the fixed point is up to 1/(1 − β) times as far from the optimum. One row a
// round, as D-PSGD.
#include <algorithm>

#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::decentlam {
namespace {

struct Options {
  double momentum = 0.9;
};

enum Row { kX, kMomentum, kWay };

class DecentLaM final : public Algorithm {
 public:
  explicit DecentLaM(const Options& options) : momentum_(options.momentum) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x", .mixed = true, .initial = RowSpec::Initial::parameters},
            {.name = "momentum"},
            {.name = "way", .survives = false}};
  }
  AlgorithmRequirements requirements() const override {
    return {.linear_steps = true, .tolerates_peer_loss = true, .codec = Fidelity::rounded};
  }
  int steps_per_round() const override { return 1; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  // An error of eigenvalue λ of W and curvature h follows z² − (λ (1 − γh) + β) z + β = 0, which is
  // stable where −1 − 2β < λ (1 − γh) < 1. As γ grows, the first of the two ends is reached where
  // λ > 0, first for λ = 1, and the other one where λ < 0.
  std::optional<double> largest_stable_step(double lowest) const override {
    const double positive = 2 * (1 + momentum_);
    return lowest < 0 ? std::min(positive, 1 - 1 / lowest) : positive;
  }

  // z ← mix(x − γ ∇f(x));  g̃ ← (x − z)/γ;  m ← β m + g̃;  x ← x − γ m, which is z − γ β m with the
  // last m
  task<void> round(Node& node, Round t) const override {
    const std::span<float> g = node.row(kGradientRow), m = node.row(kMomentum),
                           way = node.row(kWay);
    co_await node.gradient(node.x(), g);
    const double rate = node.rate();
    co_await node.copy(node.x(), way);
    co_await node.update(node.x(), g);
    co_await node.mix(t, kX);
    co_await node.axpy(-1.0F, node.x(), way);
    co_await node.scale(m, static_cast<float>(momentum_));
    co_await node.axpy(static_cast<float>(-rate), m, node.x());
    if (rate > 0) co_await node.axpy(static_cast<float>(1 / rate), way, m);
  }

 private:
  double momentum_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters = ParameterSet<Options>().add(
      "momentum", &Options::momentum,
      {.help = "β; leave optimizer.momentum at 0", .minimum = 0, .maximum = 0.9999});
  return {.name = "decentlam",
          .summary =
              "DecentLaM: D-PSGD with a momentum that adds no bias where data differ, for large "
              "batches; one row per round",
          .source = "Yuan et al. 2021 (ICCV), Alg. 2",
          .parameters = parameters.specs(),
          .make = make_with<DecentLaM>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::decentlam
