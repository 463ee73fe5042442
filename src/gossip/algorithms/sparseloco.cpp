// SparseLoCo: DiLoCo whose peers send a coded part of their way, and keep what they did not send
// for the next round (error feedback) in the place of an outer momentum. The codec of the run says
// what is sent; with topk it is the paper's choice, but of the values of the whole row, not of each
// 4,096 values, and with values of 4 bytes, not of 2 bits. All peers add the same messages in the
// same order, so their models stay equal, bit by bit.
#include "gossip/algorithm.hpp"
#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::sparseloco {
namespace {

struct Options {
  int local_steps = 30;
  double outer_rate = 1;
  double error_decay = 0.95;
};

enum Row { kX, kError, kAnchor, kSent, kSum };

class SparseLoCo final : public Algorithm {
 public:
  explicit SparseLoCo(const Options& options)
      : steps_(options.local_steps), rate_(options.outer_rate), decay_(options.error_decay) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x", .initial = RowSpec::Initial::parameters},
            {.name = "error"},
            {.name = "anchor", .survives = false},
            {.name = "sent", .survives = false},
            {.name = "sum", .survives = false}};
  }
  AlgorithmRequirements requirements() const override {
    return {.synchronous = true, .common_start = true, .codec = Fidelity::partial};
  }
  int steps_per_round() const override { return steps_; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }
  std::vector<ExchangeVolume> communication(const topology::MixingSchedule&,
                                            const topology::MixingMatrix& w,
                                            std::size_t d) const override {
    return {neighbour_volume(w, d)};
  }

  Status check(const topology::MixingSchedule& schedule) const override {
    bool complete = schedule.period() == 1;
    const auto w = schedule.at(0);
    for (int i = 0; complete && i < w->peers(); ++i)
      complete = static_cast<int>(w->in_neighbours(i).size()) == w->peers() - 1;
    if (complete) return {};
    return invalid_error(
        "topology.kind: 'sparseloco' adds the messages of all peers in every round; choose "
        "complete, "
        "or choco for any graph");
  }

  // φ ← x;  x ← x after H local steps;  e ← β e + φ − x;  q ← C(e), sent;  e ← e − q;
  // x ← φ − (α/n) Σ_j q_j
  task<void> round(Node& node, Round t) const override {
    const std::span<float> x = node.x(), e = node.row(kError), anchor = node.row(kAnchor),
                           sent = node.row(kSent), sum = node.row(kSum);
    co_await node.copy(x, anchor);
    co_await node.local_steps(x, steps_);
    co_await node.scale(e, static_cast<float>(decay_));
    co_await node.add_difference(e, anchor, x);
    co_await node.copy(e, node.row(kGradientRow));
    co_await node.fill(sent, 0.0F);
    co_await node.send_coded(t, kGradientRow, sent);
    co_await node.axpy(-1.0F, sent, e);
    co_await node.fill(sum, 0.0F);
    for (int j = 0; j < node.peers(); ++j) {
      if (j == node.id()) co_await node.axpy(1.0F, sent, sum);
      else co_await node.receive_coded(j, t, kGradientRow, sum);
    }
    co_await node.copy(anchor, x);
    co_await node.axpy(static_cast<float>(-rate_ / node.peers()), sum, x);
  }

 private:
  int steps_;
  double rate_, decay_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>()
          .add("local_steps", &Options::local_steps,
               {.help = "H: local steps in a round", .minimum = 1, .maximum = 1e6, .unit = "steps"})
          .add("outer_rate", &Options::outer_rate,
               {.help = "α of the outer step", .minimum = 0, .maximum = 10})
          .add("error_decay", &Options::error_decay,
               {.help = "β: the part of what was not sent that remains for the next round",
                .minimum = 0,
                .maximum = 1});
  return {.name = "sparseloco",
          .summary =
              "SparseLoCo: many local steps, then an outer step with the peers' coded ways and "
              "error feedback; on the complete graph, with codec topk",
          .source = "Sarfi et al. 2025",
          .parameters = parameters.specs(),
          .make = make_with<SparseLoCo>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::sparseloco
