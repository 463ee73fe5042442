// Quasi-global momentum: each peer's momentum follows the way of the mixed parameters instead of
// its own gradients, so that it points where the network goes even where data differ. One row a
// round, as D-PSGD.
#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::qg_momentum {
namespace {

struct Options {
  double momentum = 0.9;
  bool nesterov = false;
};

enum Row { kX, kMomentum, kWay };

class QuasiGlobalMomentum final : public Algorithm {
 public:
  explicit QuasiGlobalMomentum(const Options& options)
      : momentum_(options.momentum), nesterov_(options.nesterov) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x", .mixed = true, .initial = RowSpec::Initial::parameters},
            {.name = "quasi_global_momentum"},
            {.name = "way", .survives = false}};
  }
  AlgorithmRequirements requirements() const override {
    return {.linear_steps = true, .tolerates_peer_loss = true, .codec = Fidelity::rounded};
  }
  int steps_per_round() const override { return 1; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  // z ← x − γ (∇f(x) + μ m), by Nesterov x − γ ((1 + μ) ∇f(x) + μ² m);  x⁺ ← mix(z);
  // m ← μ m + (1 − μ) (x − x⁺)/γ
  task<void> round(Node& node, Round t) const override {
    const std::span<float> g = node.row(kGradientRow), m = node.row(kMomentum),
                           way = node.row(kWay);
    co_await node.gradient(node.x(), g);
    const double rate = node.rate();
    co_await node.copy(node.x(), way);
    // By Nesterov, the step with ∇f(x) + μ²/(1 + μ) m, and μ times the same way once more.
    const double ahead = nesterov_ ? momentum_ * momentum_ / (1 + momentum_) : momentum_;
    co_await node.axpy(static_cast<float>(ahead), m, g);
    co_await node.update(node.x(), g);
    if (nesterov_)
      co_await node.add_difference(node.x(), node.x(), way, static_cast<float>(momentum_));
    co_await node.mix(t, kX);
    co_await node.axpy(-1.0F, node.x(), way);
    co_await node.scale(m, static_cast<float>(momentum_));
    if (rate > 0) co_await node.axpy(static_cast<float>((1 - momentum_) / rate), way, m);
  }

 private:
  double momentum_;
  bool nesterov_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>()
          .add("momentum", &Options::momentum,
               {.help = "μ; leave optimizer.momentum at 0", .minimum = 0, .maximum = 0.9999})
          .add("nesterov", &Options::nesterov,
               {.help = "QG-DSGDm-N: the step looks ahead by Nesterov, with (1 + μ) ∇f + μ² m in "
                        "place of ∇f + μ m"});
  return {.name = "qg_momentum",
          .summary =
              "D-PSGD with quasi-global momentum, which follows the mixed parameters: for "
              "heterogeneous data",
          .source = "Lin, Karimireddy, Stich and Jaggi 2021, Alg. 1; nesterov: their QG-DSGDm-N",
          .parameters = parameters.specs(),
          .make = make_with<QuasiGlobalMomentum>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::qg_momentum
