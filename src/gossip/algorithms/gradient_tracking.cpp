// Gradient tracking: each peer follows the network's mean gradient with a tracker y, whose sum over
// the peers is always that of the newest local gradients, so that the peers reach the common
// optimum however different their data are. y₀ = ∇f(x₀), and y is averaged after it was used: atc
// is x⁺ = W (x − γ y), y⁺ = W y + ∇f(x⁺) − ∇f(x), the form of NEXT and of push-pull. An optimizer
// with a state of its own steps with the tracker (with Adam: Carnevale, Farina, Notarnicola and
// Notarstefano 2022).
#include <algorithm>

#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::gradient_tracking {
namespace {

struct Options {
  std::string order = "atc";
};

enum Row { kX, kTracker, kGradient };

class GradientTracking final : public Algorithm {
 public:
  explicit GradientTracking(const Options& options) : overlapped_(options.order == "awc") {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x", .mixed = true, .initial = RowSpec::Initial::parameters},
            {.name = "tracker",
             .mixed = true,
             .conserved_sum = true,
             .rejoin = RowSpec::Rejoin::reinitialise},
            {.name = "gradient", .rejoin = RowSpec::Rejoin::reinitialise}};
  }
  AlgorithmRequirements requirements() const override {
    return {.data_weights = DataWeights::mean_gradients,
            .tolerates_peer_loss = true,
            .codec = Fidelity::rounded};
  }
  int steps_per_round() const override { return 1; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  bool mixes_beside_training(int k) const override { return overlapped_ && k == kX; }
  std::vector<ExchangeVolume> communication(const topology::MixingSchedule& schedule,
                                            const topology::MixingMatrix& w,
                                            std::size_t d) const override {
    if (overlapped_) return Algorithm::communication(schedule, w, d);
    return {neighbour_volume(w, d, 2)};
  }

  // An error of eigenvalue λ of W and curvature h follows z² − (2λ − λγh) z + λ² − λγh = 0, and
  // under awc z² − (2λ − γh) z + λ² − γh = 0. As γ grows, a root leaves the unit circle at −1
  // where λ > 0, first for λ = 1, and under awc everywhere; a pair of roots of product λ² − λγh
  // leaves it where λ < 0.
  std::optional<double> largest_stable_step(double lowest) const override {
    if (overlapped_) return (1 + lowest) * (1 + lowest) / 2;
    return lowest < 0 ? std::min(2.0, (lowest * lowest - 1) / lowest) : 2.0;
  }

  task<void> round(Node& node, Round t) const override {
    return overlapped_ ? awc(node, t) : atc(node, t);
  }

 private:
  // y ← y + ∇f(x) − g;  g ← ∇f(x);  x ← mix(x − γ y);  y ← mix(y). Both rows travel at once.
  task<void> atc(Node& node, Round t) const {
    co_await track(node);
    co_await node.begin_mix(t, kTracker);
    co_await node.update(node.x(), node.row(kTracker));
    co_await node.begin_mix(t, kX);
    // In the order in which they travel: coded rows are taken from a link when a mix is finished,
    // and those of x lie behind those of the tracker.
    co_await node.finish_mix(kTracker);
    co_await node.finish_mix(kX);
  }

  // y ← y + ∇f(x) − g;  g ← ∇f(x);  x ← mix(x) − γ y;  y ← mix(y). The row x travels while the
  // gradient is computed.
  task<void> awc(Node& node, Round t) const {
    co_await node.begin_mix(t, kX);
    co_await track(node);
    co_await node.begin_mix(t, kTracker);
    co_await node.finish_mix(kX);
    co_await node.update(node.x(), node.row(kTracker));
    co_await node.finish_mix(kTracker);
  }

  task<void> track(Node& node) const {
    const std::span<float> fresh = node.row(kGradientRow), last = node.row(kGradient);
    co_await node.gradient(node.x(), fresh);
    co_await node.add_difference(node.row(kTracker), fresh, last);
    co_await node.copy(fresh, last);
  }

  bool overlapped_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>().add("order", &Options::order,
                                  {.help = "adapt-then-combine, or adapt-while-communicate "
                                           "(DIGing), which is stable for smaller rates only",
                                   .choices = {"atc", "awc"}});
  return {.name = "gradient_tracking",
          .summary = "gradient tracking: no bias from heterogeneous data, with two rows per round",
          .source = "Di Lorenzo and Scutari 2016 (NEXT; atc); Nedić, Olshevsky and Shi 2017 (awc)",
          .parameters = parameters.specs(),
          .make = make_with<GradientTracking>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::gradient_tracking
