// RFA: the geometric median of the rows of the peer and of its neighbours with their weights in W,
//   argmin_v Σ_j W[i][j] ‖v − x_j‖,
// by the smoothed Weiszfeld algorithm,
//   β_j = W[i][j] / max(ν, ‖v − x_j‖),   v ← Σ_j β_j x_j / Σ_j β_j.
// Every iterate is a mean of the rows, so its distances follow from those between the rows, and
// only the last one is computed. The first iterate is the mean by W. The paper takes 3 steps, which
// do for rows that are about as far apart as honest ones. Where rows of weight w are R times as far
// away, a step reduces their part of v by the factor w / (1 − w) only: w = 1/3 and R = 10^6 take 20
// steps. As a step does not access the rows, more of them are allowed. Beyond R = 10^8 the rounding
// of the squared distances shows.
#include <algorithm>
#include <cmath>

#include "gossip/rules/aggregators.hpp"

namespace gossamer::gossip::rules {

std::vector<double> geometric_median_weights(const SquaredDistances& distances,
                                             std::span<const double> alpha,
                                             const WeiszfeldOptions& options) {
  constexpr double kTolerance = 1e-12;
  std::vector<double> weights(alpha.begin(), alpha.end());
  for (int step = 0; step < options.iterations; ++step) {
    const std::vector<double> distance = distances.from(weights);
    std::vector<double> next(alpha.size());
    double sum = 0;
    for (std::size_t j = 0; j < next.size(); ++j) {
      next[j] = alpha[j] / std::max(options.smoothing, distance[j]);
      sum += next[j];
    }
    for (double& beta : next) beta /= sum;
    bool changed = false;
    for (std::size_t j = 0; j < next.size(); ++j)
      changed |= std::abs(next[j] - weights[j]) > kTolerance * weights[j];
    weights = std::move(next);
    if (!changed) break;
  }
  return weights;
}

namespace geometric_median {
namespace {

struct Options {
  int hostile = 1;
  WeiszfeldOptions weiszfeld;
};

MixingRule make(const Options& options) {
  return {.function = DistanceRule{.weights = [options](const Neighbourhood& hood) {
            return geometric_median_weights(hood.distances, hood.weights, options.weiszfeld);
          }}};
}

}  // namespace

RuleKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>()
          .add("hostile", &Options::hostile, hostile_notes())
          .add("iterations", &Options::weiszfeld, &WeiszfeldOptions::iterations,
               {.help = "steps of the Weiszfeld algorithm, at most",
                .minimum = 1,
                .maximum = 10000,
                .unit = "steps"})
          .add("smoothing", &Options::weiszfeld, &WeiszfeldOptions::smoothing,
               {.help = "ν: distances below it count as ν",
                .minimum = 0,
                .maximum = 1e30,
                .minimum_excluded = true});
  return {.name = "geometric_median",
          .summary = "RFA: the geometric median of the rows with their weights in W",
          .source = "Pillutla, Kakade and Harchaoui 2022, Alg. 2",
          .parameters = parameters.specs(),
          .least_neighbours = [](int hostile) { return 2 * hostile; },
          .guarantee = "the weight of the hostile rows has to be below 1/2",
          .make = make_rule_with(parameters, make)};
}

}  // namespace geometric_median
}  // namespace gossamer::gossip::rules
