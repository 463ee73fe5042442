// BRIDGE-T: at each coordinate, the b largest and the b smallest of the neighbours' values are left
// out, and the mean is taken of the others and of the peer's own value, which always stays:
//   (x_i + Σ_{kept j} x_j) / (|N_i| − 2b + 1).
// All values weigh the same, as in the paper; of W only the graph is used. With 2b neighbours or
// fewer the row does not change.
#include "gossip/rule.hpp"

namespace gossamer::gossip::rules::trimmed_mean {
namespace {

MixingRule make(const HostileOptions& options) {
  const auto hostile = static_cast<std::size_t>(options.hostile);
  return {.function = RankRule{.ranks_own_row = false, .ranks = [hostile](std::size_t neighbours) {
                                 if (neighbours <= 2 * hostile) return Ranks{};
                                 const std::size_t kept = neighbours - 2 * hostile;
                                 return Ranks{hostile, kept, 1 / static_cast<double>(kept + 1)};
                               }}};
}

}  // namespace

RuleKind descriptor() {
  return {.name = "trimmed_mean",
          .summary =
              "at each coordinate the mean of the own value and of the neighbours' without "
              "the b largest and b smallest; unweighted",
          .source = "Fang, Yang and Bajwa 2022 (BRIDGE-T); Yin et al. 2018",
          .parameters = hostile_parameters().specs(),
          .least_neighbours = [](int hostile) { return 2 * hostile + 1; },
          .make = make_rule_with(hostile_parameters(), make)};
}

}  // namespace gossamer::gossip::rules::trimmed_mean
