// Nearest-neighbour mixing: each of the m rows of the peer and of its neighbours is replaced by the
// mean of the m − b rows nearest to it, itself included,
//   y_k = (1 / (m − b)) Σ_{l near k} x_l,
// and the y_k are aggregated. With `then` = own, the mix is the peer's own y_0, which is
// nearest-neighbour averaging (NNA). All rows weigh the same; of W only the graph is used.
//
// With then = krum, the score of y_k is over the m − b nearest means, itself included, as in the
// paper: hostile rows that are equal have equal means, and a shorter sum of theirs would be zero.
// With 2b neighbours, b hostile ones that send a peer its own row would be all that it mixes with,
// so more are needed.
//
// The y_k are combinations of the rows, so their distances follow from those of the rows, and only
// the result is computed.
#include <algorithm>

#include "gossip/rules/aggregators.hpp"

namespace gossamer::gossip::rules::nearest_neighbour_mixing {
namespace {

struct Options {
  int hostile = 1;
  std::string then = "own";
};

/// [l]: the weight of x_l in y_k.
std::vector<double> mean_of_nearest(const SquaredDistances& distances, std::size_t k, int hostile) {
  const std::size_t m = distances.rows(), b = static_cast<std::size_t>(hostile);
  const std::size_t kept = m > b ? m - b : 1;
  std::vector<double> mean(m, 0.0);
  const std::vector<std::size_t> nearest = distances.nearest_to(k);
  for (std::size_t n = 0; n < kept; ++n) mean[nearest[n]] = 1 / static_cast<double>(kept);
  return mean;
}

std::vector<double> mixed_weights(const Neighbourhood& hood, const Options& options) {
  if (options.then == "own") return mean_of_nearest(hood.distances, 0, options.hostile);
  std::vector<std::vector<double>> means;
  for (std::size_t k = 0; k < hood.rows(); ++k)
    means.push_back(mean_of_nearest(hood.distances, k, options.hostile));
  const SquaredDistances distances(hood.distances, means);
  if (options.then == "krum")
    return means[krum_choice(distances, static_cast<std::size_t>(options.hostile) + 1)];
  const std::size_t m = hood.rows();
  const std::vector<double> alike(m, 1 / static_cast<double>(m));
  const auto of_means = geometric_median_weights(distances, alike, {});
  std::vector<double> weights(m, 0.0);
  for (std::size_t k = 0; k < m; ++k)
    for (std::size_t l = 0; l < m; ++l) weights[l] += of_means[k] * means[k][l];
  return weights;
}

MixingRule make(const Options& options) {
  return {.function = DistanceRule{.between_neighbours = options.then != "own",
                                   .weights = [options](const Neighbourhood& hood) {
                                     return mixed_weights(hood, options);
                                   }}};
}

}  // namespace

RuleKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>()
          .add("hostile", &Options::hostile, hostile_notes())
          .add("then", &Options::then,
               {.help = "what is made of the means of nearest rows: own: the peer's own one (NNA); "
                        "geometric_median, krum: their aggregate",
                .choices = {"own", "geometric_median", "krum"}});
  return {.name = "nearest_neighbour_mixing",
          .summary =
              "NNM, NNA: means of all rows but the b farthest from each, then the own mean "
              "or an aggregate of the means; unweighted",
          .source = "Allouah et al. 2023 (NNM); Farhadkhani et al. 2023 (NNA)",
          .parameters = parameters.specs(),
          .least_neighbours = [](int hostile) { return 2 * hostile + 1; },
          .make = make_rule_with(parameters, make)};
}

}  // namespace gossamer::gossip::rules::nearest_neighbour_mixing
