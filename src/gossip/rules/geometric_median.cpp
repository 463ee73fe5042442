// RFA: the geometric median of the rows of the peer and of its neighbours with their weights in W,
//   argmin_v Σ_j W[i][j] ‖v − x_j‖,
// by the smoothed Weiszfeld algorithm,
//   β_j = W[i][j] / ‖v − x_j‖,   v ← Σ_j β_j x_j / Σ_j β_j.
// Rows within ν of v, of total weight w, have no such β. They hold v back instead: with T the mean
// by β of the others, and r = Σ_j β_j ‖T − v‖ their pull, v ← T + min(1, w / r) (v − T) (Vardi and
// Zhang, The multivariate L1-median and associated data depth, PNAS 2000). With β = w / ν, as in
// the paper, a step away from a row would be one of about ν.
// Every iterate is a mean of the rows, so its distances follow from those between the rows, and
// only the last one is computed. As a step does not access the rows, there are more of them than
// the paper's 3.
//
// The first iterate is the medoid, the row with the least Σ_j W[i][j] ‖x − x_j‖, and not the
// paper's mean by W: rows of weight w < 1/2 that are R times as far away as the others move the
// mean by R w, and a step takes that back by the factor w / (1 − w) only. The medoid is not one of
// them. Rows more than 10^6 times as far from it as half of the weight are left out, because the
// rounding of their squared distances would hide those of the others.
#include <algorithm>
#include <cmath>
#include <limits>

#include "gossip/rules/aggregators.hpp"

namespace gossamer::gossip::rules {
namespace {

/// The row with the least Σ_j alpha_j ‖x − x_j‖; of equal sums the lower index.
std::size_t medoid(const SquaredDistances& distances, std::span<const double> alpha) {
  std::size_t chosen = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < alpha.size(); ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < alpha.size(); ++j) sum += alpha[j] * std::sqrt(distances(i, j));
    if (sum < least) chosen = i, least = sum;
  }
  return chosen;
}

/// `alpha` without the rows that are too far from row `centre` to be computed with.
std::vector<double> near_weights(const SquaredDistances& distances, std::span<const double> alpha,
                                 std::size_t centre) {
  constexpr double kFar = 1e6;
  const std::vector<std::size_t> nearest = distances.nearest_to(centre);
  double total = 0, within = 0, squared_radius = 0;
  for (const double weight : alpha) total += weight;
  for (const std::size_t j : nearest) {
    within += alpha[j];
    squared_radius = distances(centre, j);
    if (2 * within >= total) break;
  }
  std::vector<double> near(alpha.begin(), alpha.end());
  for (std::size_t j = 0; j < near.size(); ++j)
    if (distances(centre, j) > kFar * kFar * squared_radius) near[j] = 0;
  return near;
}

}  // namespace

std::vector<double> geometric_median_weights(const SquaredDistances& distances,
                                             std::span<const double> alpha,
                                             const WeiszfeldOptions& options) {
  constexpr double kTolerance = 1e-12;
  const std::size_t centre = medoid(distances, alpha);
  const std::vector<double> near = near_weights(distances, alpha, centre);
  std::vector<double> weights(alpha.size(), 0.0);
  weights[centre] = 1;
  for (int step = 0; step < options.iterations; ++step) {
    const std::vector<double> distance = distances.from(weights);
    std::vector<double> next(near.size());
    double sum = 0, here = 0;
    for (std::size_t j = 0; j < next.size(); ++j) {
      if (distance[j] <= options.smoothing) here += near[j];
      else sum += next[j] = near[j] / distance[j];
    }
    if (sum == 0) break;  // all rows are where v is
    for (double& beta : next) beta /= sum;
    const double pull = sum * std::sqrt(SquaredDistances(distances, {next, weights})(0, 1));
    if (pull <= here) break;
    for (std::size_t j = 0; j < next.size(); ++j) next[j] += here / pull * (weights[j] - next[j]);
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
               {.help = "ν: a row that is nearer than that counts as in the same place",
                .minimum = 0,
                .maximum = 1e30,
                .minimum_excluded = true});
  return {.name = "geometric_median",
          .summary = "RFA: the geometric median of the rows with their weights in W",
          .source = "Pillutla, Kakade and Harchaoui 2022, Alg. 2",
          .parameters = parameters.specs(),
          .least_neighbours = [](int hostile) { return 2 * hostile; },
          .guarantee = "the weight of the hostile rows has to be below 1/2",
          .majority_decides = true,
          .make = make_rule_with(parameters, make)};
}

}  // namespace geometric_median
}  // namespace gossamer::gossip::rules
