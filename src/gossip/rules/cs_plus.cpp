// CS+: the clipped sum of the differences to the neighbours, as in ClippedGossip,
//   x_i + Σ_j W[i][j] clip(x_j − x_i, τ_i),
// with a radius at which 2b rows are clipped: of the distances ‖x_j − x_i‖, ascending, τ_i is the
// largest one after which rows of weight 2δ_i or more follow, where δ_i is the largest weight that
// b neighbours may have. The hostile rows and as many honest ones are then clipped to the distance
// of an honest row at most, which makes the breakdown point nearly that of the best possible rule.
// Where all neighbours weigh the same, τ_i is the (2b + 1)-th largest distance; with 2b neighbours
// or fewer it is 0, and the row does not change.
#include <cmath>
#include <limits>

#include "gossip/rule.hpp"

namespace gossamer::gossip::rules::cs_plus {
namespace {

double clipping_radius(const Neighbourhood& hood, int hostile) {
  constexpr double kRounding = 1e-6;  // of sums of weights, which are float
  if (hostile == 0) return std::numeric_limits<double>::infinity();
  const double clipped = 2 * hood.hostile_weight(hostile);
  const std::vector<std::size_t> nearest = hood.distances.nearest_to(0);
  double beyond = 0;
  for (std::size_t k = nearest.size() - 1; k > 0; --k) {
    if (beyond >= clipped - kRounding) return std::sqrt(hood.distances(0, nearest[k]));
    beyond += hood.weights[nearest[k]];
  }
  return 0;
}

MixingRule make(const HostileOptions& options) {
  return {.function = DistanceRule{
              .between_neighbours = false, .weights = [options](const Neighbourhood& hood) {
                return clipped_weights(hood, clipping_radius(hood, options.hostile));
              }}};
}

}  // namespace

RuleKind descriptor() {
  return {.name = "cs_plus",
          .summary =
              "CS+: the mean, with the difference to each neighbour clipped to the distance "
              "beyond which 2b of them lie",
          .source = "Gaucher, Dieuleveut and Hendrikx 2025",
          .parameters = hostile_parameters().specs(),
          .least_neighbours = [](int hostile) { return 2 * hostile + 1; },
          .guarantee = "twice the largest weight of b neighbours has to be below the weight of all",
          .make = make_rule_with(hostile_parameters(), make)};
}

}  // namespace gossamer::gossip::rules::cs_plus
