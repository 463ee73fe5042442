// Krum: of the m rows of the peer and of its neighbours, the one whose m − b − 2 nearest rows are
// nearest to it, by the sum of their squared distances. All rows weigh the same; of W only the
// graph is used. The mix is one of the rows, so it takes no mean of honest rows either.
#include <algorithm>

#include "gossip/rules/aggregators.hpp"

namespace gossamer::gossip::rules {

std::size_t krum_choice(const SquaredDistances& distances, std::size_t left_out) {
  const std::size_t m = distances.rows();
  const std::size_t counted = m > left_out ? m - left_out : 1;
  std::size_t chosen = 0;
  double best = 0;
  for (std::size_t i = 0; i < m; ++i) {
    const std::vector<std::size_t> nearest = distances.nearest_to(i);
    double score = 0;
    for (std::size_t k = 1; k <= counted && k < m; ++k) score += distances(i, nearest[k]);
    if (i == 0 || score < best) chosen = i, best = score;
  }
  return chosen;
}

namespace krum {
namespace {

MixingRule make(const HostileOptions& options) {
  return {.function = DistanceRule{.weights = [options](const Neighbourhood& hood) {
            std::vector<double> weights(hood.rows(), 0.0);
            weights[krum_choice(hood.distances, static_cast<std::size_t>(options.hostile) + 2)] = 1;
            return weights;
          }}};
}

}  // namespace

RuleKind descriptor() {
  return {.name = "krum",
          .summary = "the row, of the own one and the neighbours', whose nearest rows are nearest",
          .source = "Blanchard et al. 2017",
          .parameters = hostile_parameters().specs(),
          .least_neighbours = [](int hostile) { return 2 * hostile + 2; },
          .make = make_rule_with(hostile_parameters(), make)};
}

}  // namespace krum
}  // namespace gossamer::gossip::rules
