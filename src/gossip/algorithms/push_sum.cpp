// Stochastic gradient push: SGD on directed graphs, where a peer knows to how many it speaks and no more. W keeps only its
// columns, so mixing alone would lean towards peers that are heard by many; each peer therefore mixes a weight together with
// its sum, and sum over weight is its model.
//
// W_ii x_i + Σ_j W_ij x_j is mixed by differences too: x_i + Σ_j W_ij (x_j − x_i) + s_i x_i with s_i = Σ_j W_ij − 1. Where rows
// sum to 1, s_i is 0, the weights stay 1, and this is D-PSGD bit by bit.
#include "gossip/algorithm.hpp"
#include "gossip/node.hpp"

namespace gossamer::gossip::algorithms {
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
             .rejoin = RowSpec::Rejoin::restart,
             .extra = 1}};
  }
  AlgorithmNeeds needs() const override { return {.only_columns = true}; }
  int steps_per_round() const override { return steps_; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  // x ← x − γ ∇f_i(z; batch), z ← x/w, H times;  (x, w) ← W_ii (x, w) + Σ_j W_ij (x_j, w_j);  z ← x/w
  task<void> round(Node& node, Round t) const override {
    const std::span<float> z = node.x(), g = node.row(kGradientRow), x = node.row(kSum).first(z.size());
    for (int step = 0; step < steps_; ++step) {
      if (step > 0) co_await divide(node);
      co_await node.gradient(z, g);
      co_await node.update(x, g);
    }
    co_await mix(node, t);
    co_await divide(node);
  }

 private:
  task<void> mix(Node& node, Round t) const {
    const std::span<float> before = node.row(kSum);
    co_await node.mix(t, kSum);
    const std::span<float> after = node.row(kSum);
    const auto w = node.matrix(t);
    const auto surplus = static_cast<float>(w->row_surplus(node.id()));
    if (surplus == 0) co_return;
    if (after.data() == before.data()) co_await node.scale(after, 1 + surplus);  // it heard nobody
    else co_await node.axpy(surplus, before, after);
  }

  task<void> divide(Node& node) const {
    const std::span<float> z = node.x(), sum = node.row(kSum);
    co_await node.divide(sum.first(z.size()), &sum[z.size()], z);
  }

  int steps_;
};

}  // namespace

AlgorithmKind push_sum() {
  static const auto parameters = ParameterSet<Options>().add(
      "local_steps", &Options::local_steps, {.help = "H", .minimum = 1, .maximum = 1e6, .unit = "steps a round"});
  return {.name = "push_sum",
          .summary = "SGP: D-PSGD for directed graphs, balanced or not, by push-sum's weights",
          .source = "Assran et al. 2019, Alg. 1; Kempe, Dobra and Gehrke 2003",
          .parameters = parameters.specs(),
          .make = make_with<PushSum>(parameters)};
}

}  // namespace gossamer::gossip::algorithms
