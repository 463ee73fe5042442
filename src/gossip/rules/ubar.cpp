// UBAR, in two stages: of the N neighbours' rows, the N − b nearest to the peer's own row are
// candidates. A candidate is kept if its loss on a batch of the peer's own samples is not larger
// than the loss of the own row; if no candidate is, the one of least loss is kept. The mix is
//   α x_i + (1 − α) · the mean of the kept rows.
// If there is no candidate, x_i does not change. Of W only the graph is used. In a run without
// training there are no losses, and all candidates are kept.
#include <algorithm>
#include <limits>

#include "gossip/rule.hpp"

namespace gossamer::gossip::rules::ubar {
namespace {

struct Options {
  int hostile = 1;
  double own_weight = 0.5;
};

/// 1 − α in equal parts for the rows of `kept`.
std::vector<double> shared_among(std::size_t rows, const std::vector<std::size_t>& kept,
                                 double own) {
  std::vector<double> weights(rows, 0.0);
  for (const std::size_t k : kept) weights[k] = (1 - own) / static_cast<double>(kept.size());
  return weights;
}

std::vector<double> candidates(const Neighbourhood& hood, const Options& options) {
  std::vector<std::size_t> nearest = hood.distances.nearest_to(0);
  nearest.erase(nearest.begin());
  const auto left_out = static_cast<std::size_t>(options.hostile);
  nearest.resize(nearest.size() - std::min(nearest.size(), left_out));
  return shared_among(hood.rows(), nearest, options.own_weight);
}

std::vector<double> by_losses(std::span<const double> weights, std::span<const double> losses,
                              double own) {
  std::vector<std::size_t> kept;
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t k = 1; k < weights.size(); ++k) {
    if (weights[k] == 0) continue;
    if (losses[k] <= losses[0]) kept.push_back(k);
    if (losses[k] < least) best = k, least = losses[k];
  }
  if (kept.empty() && best > 0) kept.push_back(best);
  return shared_among(weights.size(), kept, own);
}

MixingRule make(const Options& options) {
  return {.function = DistanceRule{
              .between_neighbours = false,
              .weights = [options](const Neighbourhood& hood) { return candidates(hood, options); },
              .by_losses =
                  [own = options.own_weight](std::span<const double> weights,
                                             std::span<const double> losses) {
                    return by_losses(weights, losses, own);
                  }}};
}

}  // namespace

RuleKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>()
          .add("hostile", &Options::hostile, hostile_notes())
          .add("own_weight", &Options::own_weight,
               {.help = "α: weight of the peer's own row", .minimum = 0, .maximum = 1});
  return {.name = "ubar",
          .summary =
              "UBAR: the mean of the own row and of near rows, of those whose loss on a batch of "
              "own samples is no larger",
          .source = "Guo, Zhang, Yu, Xie, Ma, Xiang and Liu 2021 (UBAR)",
          .parameters = parameters.specs(),
          .least_neighbours = [](int hostile) { return hostile + 1; },
          .guarantee = "the guarantee needs neighbours with similar data",
          .make = make_rule_with(parameters, make)};
}

}  // namespace gossamer::gossip::rules::ubar
