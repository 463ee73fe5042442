// D², also known as Exact Diffusion: D-PSGD with a correction that takes the peers to the common
// optimum however different their data are, for one row a round. W's eigenvalues must lie above
// −1/3: topology.lazy = true sees to it.
//
// The textbook form x⁺ = W(2x − x⁻ − γ(g − g⁻)) stalls in float32, where W's rounded rows do not
// sum to 1. Summed up, with D_t = Σ_{s<t} (z_s − mix(z_s)) kept as a row of its own, it is the form
// below, whose fixed point is exact. d takes what mixing adds to z before it is added: the rounding
// of z + m would move the sum of d over the peers, by which every later step moves their mean.
#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::d2 {
namespace {

enum Row { kX, kCorrection };

class D2 final : public Algorithm {
 public:
  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x",
             .mixed = true,
             .mixed_as_difference = true,
             .initial = RowSpec::Initial::parameters},
            {.name = "correction", .conserved_sum = true, .rejoin = RowSpec::Rejoin::reinitialise}};
  }
  AlgorithmRequirements requirements() const override {
    return {.fixed_matrix = true,
            .above = -1.0 / 3,
            .linear_steps = true,
            .tolerates_peer_loss = true,
            .codec = Fidelity::rounded};
  }
  int steps_per_round() const override { return 1; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  // z ← x − γ ∇f(x) − d;  m ← mix(z) − z;  d ← d − m;  x ← z + m
  task<void> round(Node& node, Round t) const override {
    const std::span<float> z = node.x(), d = node.row(kCorrection);
    co_await node.gradient(z, node.row(kGradientRow));
    co_await node.update(z, node.row(kGradientRow));
    co_await node.axpy(-1.0F, d, z);
    co_await node.mix(t, kX);
    if (node.x().data() == z.data()) co_return;  // there was nothing to mix
    co_await node.axpy(-1.0F, node.x(), d);
    co_await node.axpy(1.0F, z, node.x());
  }
};

}  // namespace

AlgorithmKind descriptor() {
  return {
      .name = "d2",
      .summary = "D² / Exact Diffusion: no bias from heterogeneous data, with one row per round",
      .source = "Tang et al. 2018; Yuan, Ying, Zhao and Sayed 2019",
      .parameters = {},
      .make = make_plain<D2>};
}

}  // namespace gossamer::gossip::algorithms::d2
