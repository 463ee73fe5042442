// ClippedGossip: a neighbour moves a peer's row by no more than its weight times a radius τ_i,
//   x_i + Σ_j W[i][j] clip(x_j − x_i, τ_i),   clip(z, τ) = z · min(1, τ / ‖z‖).
// The first version of the paper calls it self-centred clipping.
//
// Where no radius is given, it is the adaptive one of the paper. In theory it is
// τ_i² = (1/δ_i) Σ_j W[i][j] ‖x_i − x_j‖² over the honest j, where δ_i is the weight of the hostile
// neighbours of peer i. As these are not known, the sum leaves out the farthest rows, whose weights
// reach δ_i, and δ_i is the largest weight that b neighbours may have. For b = 0 the radius is
// infinite, and the rule is the mean.
#include <cmath>
#include <limits>

#include "gossip/rule.hpp"

namespace gossamer::gossip::rules::clipped {
namespace {

struct Options {
  int hostile = 1;
  double radius = 0;
};

double adaptive_radius(const Neighbourhood& hood, int hostile) {
  constexpr double kRounding = 1e-6;  // of sums of weights, which are float
  const double delta = hood.hostile_weight(hostile);
  if (delta == 0) return std::numeric_limits<double>::infinity();
  const std::vector<std::size_t> nearest = hood.distances.nearest_to(0);
  std::size_t kept = nearest.size();
  for (double left_out = 0; kept > 1 && left_out < delta - kRounding; --kept)
    left_out += hood.weights[nearest[kept - 1]];
  double sum = 0;
  for (std::size_t k = 0; k < kept; ++k)
    sum += hood.weights[nearest[k]] * hood.distances(0, nearest[k]);
  return std::sqrt(sum / delta);
}

MixingRule make(const Options& options) {
  return {.function = DistanceRule{
              .between_neighbours = false, .weights = [options](const Neighbourhood& hood) {
                return clipped_weights(hood, options.radius > 0
                                                 ? options.radius
                                                 : adaptive_radius(hood, options.hostile));
              }}};
}

}  // namespace

RuleKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>()
          .add("hostile", &Options::hostile, hostile_notes())
          .add("radius", &Options::radius,
               {.help = "τ: distance at which the difference to a neighbour is clipped; 0: the "
                        "adaptive radius, from the distances and from b",
                .minimum = 0,
                .maximum = 1e30});
  return {.name = "clipped",
          .summary =
              "ClippedGossip, or self-centred clipping: the mean, with the difference to "
              "each neighbour clipped to a radius",
          .source = "He, Karimireddy and Jaggi 2022 (ClippedGossip)",
          .parameters = parameters.specs(),
          .least_neighbours = [](int hostile) { return hostile + 1; },
          .guarantee =
              "the guarantee needs √δ, the square root of the hostile neighbours' weight, "
              "to be of the order of the spectral gap or less",
          .make = make_rule_with(parameters, make)};
}

}  // namespace gossamer::gossip::rules::clipped
