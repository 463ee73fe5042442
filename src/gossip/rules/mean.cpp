// The weighted mean by W, x_i + Σ_j W[i][j] (x_j − x_i): the default. One hostile neighbour moves
// it anywhere.
#include "gossip/rule.hpp"

namespace gossamer::gossip::rules::mean {

RuleKind descriptor() {
  return {.name = "mean",
          .summary = "the weighted mean by W; withstands no hostile neighbour",
          .source = "Lian et al. 2017",
          .parameters = {},
          .make = [](const ParameterValues& values) -> Result<MixingRule> {
            GOSSAMER_TRY_STATUS(check_values("mixing", {}, values));
            return MixingRule{};
          }};
}

}  // namespace gossamer::gossip::rules::mean
