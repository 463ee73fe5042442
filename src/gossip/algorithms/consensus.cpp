// Mixing without training: each round is x ← W_t x. What a topology does on its own (Xiao and Boyd 2004).
#include "gossip/node.hpp"

namespace gossamer::gossip::algorithms {
namespace {

class Consensus final : public Algorithm {
 public:
  std::vector<RowSpec> rows() const override {
    return {{.name = "x", .mixed = true, .initial = RowSpec::Initial::parameters, .conserved_sum = true}};
  }
  AlgorithmNeeds needs() const override { return {.trainer = false}; }
  int steps_per_round() const override { return 0; }
  std::vector<int> partners(int i, const topology::MixingSchedule& schedule) const override {
    return mixing_partners(i, schedule);
  }

  task<void> round(Node& node, Round t) const override { co_await node.mix(t, 0); }
};

}  // namespace

AlgorithmKind consensus() {
  return {.name = "consensus",
          .summary = "mixing alone: x ← W x, from rows that differ",
          .source = "Xiao and Boyd 2004",
          .parameters = {},
          .make = [](const ParameterValues& values) -> Result<std::unique_ptr<Algorithm>> {
            GOSSAMER_TRY_STATUS(check_values("algorithm", {}, values));
            return std::unique_ptr<Algorithm>(std::make_unique<Consensus>());
          }};
}

}  // namespace gossamer::gossip::algorithms
