// Push-pull, also known as AB: gradient tracking on any strongly connected directed graph. The
// model is pulled with a row-stochastic matrix A, which keeps peers that agree where they are, and
// the tracker pushed with a column-stochastic matrix B, which keeps the sum of the trackers that of
// the newest local gradients. So peers reach the common optimum although no peer knows a doubly
// stochastic matrix. B is W with out_degree weights, and A[i][j] = W[i][j] / Σ_k W[i][k]; with a
// doubly stochastic W both are W, and this is gradient tracking, bit by bit.
#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::push_pull {
namespace {

enum Row { kX, kTracker, kGradient };

class PushPull final : public Algorithm {
 public:
  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x",
             .mixed = true,
             .row_stochastic = true,
             .initial = RowSpec::Initial::parameters},
            {.name = "tracker",
             .mixed = true,
             .conserved_sum = true,
             .rejoin = RowSpec::Rejoin::reinitialise},
            {.name = "gradient", .rejoin = RowSpec::Rejoin::reinitialise}};
  }
  AlgorithmRequirements requirements() const override {
    return {.stochastic = topology::Stochastic::columns,
            .synchronous = true,
            .data_weights = DataWeights::mean_gradients,
            .tolerates_peer_loss = true};
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

  // y ← y + ∇f(x) − g;  g ← ∇f(x);  x ← A (x − γ y);  y ← B y. Both rows travel at once.
  task<void> round(Node& node, Round t) const override {
    const std::span<float> fresh = node.row(kGradientRow), last = node.row(kGradient);
    co_await node.gradient(node.x(), fresh);
    co_await node.add_difference(node.row(kTracker), fresh, last);
    co_await node.copy(fresh, last);
    co_await node.begin_mix(t, kTracker);
    co_await node.update(node.x(), node.row(kTracker));
    co_await node.begin_mix(t, kX);
    co_await node.finish_mix(kTracker);
    co_await node.finish_mix(kX);
  }
};

}  // namespace

AlgorithmKind descriptor() {
  return {
      .name = "push_pull",
      .summary =
          "push-pull / AB: gradient tracking on any strongly connected directed graph, with two "
          "rows per round",
      .source = "Pu, Shi, Xu and Nedić 2021; Xin and Khan 2018",
      .parameters = {},
      .make = make_plain<PushPull>};
}

}  // namespace gossamer::gossip::algorithms::push_pull
