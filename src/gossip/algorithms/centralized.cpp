// One model on the union of the peers' batches: x ← x − γ (1/n) Σ_j ∇f_j(x; batch_j), in one
// process, without any exchange. The yardstick that decentralised runs are measured with.
#include <algorithm>

#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::centralized {
namespace {

enum Row { kX, kMean };

class Centralized final : public Algorithm {
 public:
  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x", .initial = RowSpec::Initial::parameters},
            {.name = "mean", .survives = false}};
  }
  AlgorithmRequirements requirements() const override {
    return {.mixing_matrix = false, .data_weights = DataWeights::mean_gradients, .one_node = true};
  }
  int steps_per_round() const override { return 1; }
  std::vector<int> partners(int, const topology::MixingSchedule&) const override { return {}; }

  task<void> round(Node& node, Round) const override {
    const std::span<float> g = node.row(kGradientRow), mean = node.row(kMean);
    const float share = 1.0F / static_cast<float>(node.peers());
    co_await node.fill(mean, 0.0F);
    for (int j = 0; j < node.peers(); ++j) {
      co_await node.gradient(node.x(), g, j);
      co_await node.axpy(share, g, mean);
    }
    co_await node.update(node.x(), mean);
  }
};

}  // namespace

AlgorithmKind descriptor() {
  return {.name = "centralized",
          .summary = "SGD on one model with the union of the peers' batches: the reference",
          .source = "",
          .parameters = {},
          .make = make_plain<Centralized>};
}

}  // namespace gossamer::gossip::algorithms::centralized
