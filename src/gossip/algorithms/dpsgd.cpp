// Decentralised parallel SGD. Adapt-then-combine: local steps, then the average of the neighbours'
// rows (Lian et al. 2017 with the order of Sayed 2014, ch. 7). Adapt-while-communicate: the average
// of the rows as they were while the local steps are taken, which is Lian et al.'s Algorithm 1.
#include <algorithm>

#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::dpsgd {
namespace {

struct Options {
  std::string order = "atc";
  int local_steps = 1;
};

enum Row { kX, kLocal };

class Dpsgd final : public Algorithm {
 public:
  explicit Dpsgd(const Options& options)
      : steps_(options.local_steps), overlapped_(options.order == "awc") {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    std::vector<RowSpec> rows{
        {.name = "x", .mixed = true, .initial = RowSpec::Initial::parameters}};
    if (overlapped_) rows.push_back({.name = "local", .survives = false});
    return rows;
  }
  AlgorithmRequirements requirements() const override {
    return {.stochastic = topology::Stochastic::rows,
            .averages = !overlapped_,
            .tolerates_peer_loss = true,
            .codec = Fidelity::rounded};
  }
  int steps_per_round() const override { return steps_; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  bool mixes_beside_training(int k) const override { return overlapped_ && k == kX; }

  // An error of eigenvalue λ of W and curvature h is multiplied by λ (1 − γh)^H, and under awc by
  // λ − γh if H = 1.
  std::optional<double> largest_stable_step(double lowest) const override {
    if (!overlapped_) return 2;
    return steps_ == 1 ? std::optional(1 + lowest) : std::nullopt;
  }

  task<void> round(Node& node, Round t) const override {
    return overlapped_ ? awc(node, t) : atc(node, t);
  }

 private:
  // x ← x − γ ∇f_i(x; batch), H times;  x ← x + Σ_j W_t[i,j] (x_j − x)
  task<void> atc(Node& node, Round t) const {
    co_await node.local_steps(node.x(), steps_);
    co_await node.mix(t, kX);
  }

  // u ← x after H local steps, while x is being mixed;  x ← mix(x) + (u − x), which u takes too:
  // neither training nor the exchange of the next round waits for a copy.
  task<void> awc(Node& node, Round t) const {
    const std::span<float> u = node.row(kLocal);
    if (!node.holds_x(kLocal)) co_await node.copy(node.x(), u);  // the last round ends with u = x
    node.forget_copy();
    node.begin_local_steps(u, steps_);
    co_await node.training_handed_over();
    co_await node.begin_mix(t, kX);  // waits for neighbours that still read the last row
    while (node.local_steps_running()) co_await node.wait_event();
    const std::span<const float> before = node.x();
    co_await node.finish_mix(kX);
    co_await node.add_difference_to_x(u, before, kLocal);
  }

  int steps_;
  bool overlapped_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>()
          .add("order", &Options::order,
               {.help =
                    "adapt-then-combine, or adapt-while-communicate: training and mixing overlap",
                .choices = {"atc", "awc"}})
          .add(
              "local_steps", &Options::local_steps,
              {.help = "H: local steps in a round", .minimum = 1, .maximum = 1e6, .unit = "steps"});
  return {.name = "dpsgd",
          .summary = "D-PSGD: local SGD steps, then the weighted average with the neighbours",
          .source = "Lian et al. 2017, Alg. 1; Sayed 2014 for the order",
          .parameters = parameters.specs(),
          .make = make_with<Dpsgd>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::dpsgd
