// BRIDGE-M: at each coordinate, the median of the values of the peer and of its neighbours; of an
// even number of values, the mean of the two in the middle. All values weigh the same; of W only
// the graph is used. The median withstands every minority of hostile values, whatever b is.
#include "gossip/rule.hpp"

namespace gossamer::gossip::rules::median {
namespace {

MixingRule make(const HostileOptions&) {
  return {.function = RankRule{.ranks_own_row = true, .ranks = [](std::size_t neighbours) {
                                 const std::size_t rows = neighbours + 1, count = 2 - rows % 2;
                                 return Ranks{(rows - 1) / 2, count,
                                              1 / static_cast<double>(count)};
                               }}};
}

}  // namespace

RuleKind descriptor() {
  return {.name = "median",
          .summary =
              "at each coordinate the median of the own value and of the neighbours'; unweighted",
          .source = "Fang, Yang and Bajwa 2022 (BRIDGE-M); Yin et al. 2018",
          .parameters = hostile_parameters().specs(),
          .least_neighbours = [](int hostile) { return 2 * hostile; },
          .make = make_rule_with(hostile_parameters(), make)};
}

}  // namespace gossamer::gossip::rules::median
