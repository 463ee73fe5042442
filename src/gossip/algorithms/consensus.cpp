// Mixing without training: each round is x ← W_t x. What a topology does on its own (Xiao and Boyd
// 2004).
#include "gossip/node/node.hpp"

namespace gossamer::gossip::algorithms::consensus {
namespace {

struct Options {
  int length = 1024;
};

class Consensus final : public Algorithm {
 public:
  explicit Consensus(const Options& options) : length_(static_cast<std::size_t>(options.length)) {}

  std::vector<RowSpec> rows(const topology::MixingSchedule&) const override {
    return {{.name = "x",
             .mixed = true,
             .initial = RowSpec::Initial::parameters,
             .conserved_sum = true}};
  }
  AlgorithmRequirements requirements() const override {
    return {.trainer = false,
            .tolerates_peer_loss = true,
            .codec = Fidelity::rounded,
            .row_length = length_};
  }
  int steps_per_round() const override { return 0; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  task<void> round(Node& node, Round t) const override { co_await node.mix(t, 0); }

 private:
  std::size_t length_;
};

}  // namespace

AlgorithmKind descriptor() {
  static const auto parameters = ParameterSet<Options>().add(
      "length", &Options::length,
      {.help = "d, the length of a row", .minimum = 1, .maximum = 2e9, .unit = "values"});
  return {.name = "consensus",
          .summary = "mixing alone: x ← W x, from random initial rows",
          .source = "Xiao and Boyd 2004",
          .parameters = parameters.specs(),
          .make = make_with<Consensus>(parameters)};
}

}  // namespace gossamer::gossip::algorithms::consensus
