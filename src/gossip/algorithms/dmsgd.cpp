// DmSGD: momentum SGD whose momentum is averaged with the neighbours' as the model is, so that the
// momentum of a peer follows the gradients around it. Two rows a round. (Other papers call D-PSGD
// whose peers keep their momentum for themselves by the same name: dpsgd with optimizer.momentum.)
#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::dmsgd {
namespace {

struct Options {
  double momentum = 0.9;
};

enum Row { kX, kMomentum, kStepped };

class MixedMomentum final : public Algorithm {
 public:
  explicit MixedMomentum(const Options& options) : momentum_(options.momentum) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x", .mixed = true, .initial = RowSpec::Initial::parameters},
            {.name = "momentum", .mixed = true},
            {.name = "stepped", .survives = false}};
  }
  AlgorithmRequirements requirements() const override {
    return {.linear_steps = true, .tolerates_peer_loss = true, .codec = Fidelity::rounded};
  }
  int steps_per_round() const override { return 1; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }
  std::vector<ExchangeVolume> communication(const topology::MixingSchedule&,
                                            const topology::MixingMatrix& w,
                                            std::size_t d) const override {
    return {neighbour_volume(w, d, 2)};
  }

  // An error of eigenvalue λ of W and curvature h follows z² − λ (1 + β − γh) z + λ²β = 0. As γ
  // grows, a root leaves the unit circle where |λ| (γh − 1 − β) = 1 + λ²β, first for λ = 1.
  std::optional<double> largest_stable_step(double) const override { return 2 * (1 + momentum_); }

  // m ← mix(β m + ∇f(x));  x ← mix(x − γ m), with m before it is mixed. Both rows travel at once.
  // The gradient is the way of an optimizer step over γ, so that weight decay is a part of it.
  task<void> round(Node& node, Round t) const override {
    const std::span<float> x = node.x(), m = node.row(kMomentum), stepped = node.row(kStepped);
    co_await node.gradient(x, node.row(kGradientRow));
    const double rate = node.rate();
    co_await node.copy(x, stepped);
    co_await node.update(stepped, node.row(kGradientRow));
    co_await node.scale(m, static_cast<float>(momentum_));
    if (rate > 0) co_await node.add_difference(m, x, stepped, static_cast<float>(1 / rate));
    co_await node.begin_mix(t, kMomentum);
    co_await node.axpy(static_cast<float>(-rate), m, x);
    co_await node.begin_mix(t, kX);
    co_await node.finish_mix(kMomentum);
    co_await node.finish_mix(kX);
  }

 private:
  double momentum_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters = ParameterSet<Options>().add(
      "momentum", &Options::momentum,
      {.help = "β; leave optimizer.momentum at 0", .minimum = 0, .maximum = 0.9999});
  return {.name = "dmsgd",
          .summary =
              "DmSGD: momentum SGD that averages the momentum with the neighbours as well as the "
              "model, with two rows per round",
          .source = "Yu, Jin and Yang 2019, decentralized form",
          .parameters = parameters.specs(),
          .make = make_with<MixedMomentum>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::dmsgd
