// EXTRA: the first exact first-order method for one row a round. The row travels while the gradient
// is computed, so it is adapt-while-communicate by its nature.
//
// With W̃ = (I + W)/2 the textbook form is x⁺ = (I + W) x − W̃ x⁻ − γ(g − g⁻). Summed up,
// with D_t = ½ Σ_{s<t} (x_s − mix(x_s)) kept as a row of its own, it is the form below, whose fixed
// point is exact in float32 too. As in d2.cpp, d takes what mixing adds before it is added to x.
#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::extra {
namespace {

enum Row { kX, kCorrection, kDifference };

class Extra final : public Algorithm {
 public:
  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x",
             .mixed = true,
             .mixed_as_difference = true,
             .initial = RowSpec::Initial::parameters},
            {.name = "correction", .conserved_sum = true, .rejoin = RowSpec::Rejoin::reinitialise},
            {.name = "difference", .survives = false}};
  }
  AlgorithmRequirements requirements() const override {
    return {.fixed_matrix = true,
            .linear_steps = true,
            .tolerates_peer_loss = true,
            .codec = Fidelity::rounded};
  }
  int steps_per_round() const override { return 1; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  bool mixes_beside_training(int k) const override { return k == kX; }

  // v ← mix(x) − x;  m ← x + v;  x⁺ ← m − γ ∇f(x) − d;  d ← d − v/2
  task<void> round(Node& node, Round t) const override {
    const std::span<float> x = node.x(), d = node.row(kCorrection),
                           difference = node.row(kDifference);
    co_await node.begin_mix(t, kX);
    co_await node.gradient(x, node.row(kGradientRow));
    co_await node.finish_mix(kX);
    const std::span<float> m = node.x();
    const bool mixed = m.data() != x.data();
    if (mixed) {
      co_await node.copy(m, difference);
      co_await node.axpy(1.0F, x, m);
    }
    co_await node.update(m, node.row(kGradientRow));
    co_await node.axpy(-1.0F, d, m);
    if (mixed) co_await node.axpy(-0.5F, difference, d);
  }
};

}  // namespace

AlgorithmKind descriptor() {
  return {.name = "extra",
          .summary =
              "EXTRA: no bias from heterogeneous data, with one row per round, sent while the "
              "gradient is computed",
          .source = "Shi, Ling, Wu and Yin 2015",
          .parameters = {},
          .make = make_plain<Extra>};
}

}  // namespace gossamer::gossip::algorithms::extra
