// Stochastic gradient push: SGD on directed graphs, where a peer knows to how many it speaks and no
// more. W keeps only its columns, so mixing alone would lean towards peers with many
// out-neighbours; each peer therefore mixes a weight together with its sum, and sum over weight is
// its model. Where rows of W sum to 1 as well, weights stay 1, and this is D-PSGD bit by bit.
#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"
#include "gossip/node/round_parts.hpp"

namespace gossamer::gossip::algorithms::push_sum {
namespace {

struct Options {
  int local_steps = 1;
};

enum Row { kModel, kSum };

class PushSum final : public Algorithm {
 public:
  explicit PushSum(const Options& options) : steps_(options.local_steps) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x", .initial = RowSpec::Initial::parameters},
            {.name = "sum",
             .mixed = true,
             .initial = RowSpec::Initial::parameters,
             .conserved_sum = true,
             .rejoin = RowSpec::Rejoin::reinitialise,
             .extra = 1}};
  }
  AlgorithmRequirements requirements() const override {
    return {
        .stochastic = topology::Stochastic::columns, .averages = true, .tolerates_peer_loss = true};
  }
  int steps_per_round() const override { return steps_; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  // x ← x − γ ∇f_i(z; batch), z ← x/w, H times;  (x, w) ← W_ii (x, w) + Σ_j W_ij (x_j, w_j);  z ←
  // x/w
  task<void> round(Node& node, Round t) const override {
    co_await push_sum_steps(node, kSum, steps_);
    co_await node.mix(t, kSum);
    co_await divide_by_weight(node, kSum);
  }

 private:
  int steps_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters = ParameterSet<Options>().add(
      "local_steps", &Options::local_steps,
      {.help = "H: local steps in a round", .minimum = 1, .maximum = 1e6, .unit = "steps"});
  return {.name = "push_sum",
          .summary =
              "SGP: D-PSGD on any strongly connected directed graph, corrected by the weights of "
              "push-sum",
          .source = "Assran et al. 2019, Alg. 1; Kempe, Dobra and Gehrke 2003",
          .parameters = parameters.specs(),
          .make = make_with<PushSum>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::push_sum
