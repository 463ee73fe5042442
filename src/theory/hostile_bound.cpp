#include "theory/hostile_bound.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "topology/spectrum.hpp"

namespace gossamer::theory {
namespace {

/// The most neighbours of a peer, whichever they are, that weigh less than `bound` together.
int lighter_neighbours(std::span<const topology::Neighbour> neighbours, double bound) {
  std::vector<double> weights;
  for (const topology::Neighbour& neighbour : neighbours) weights.push_back(neighbour.weight);
  std::ranges::sort(weights, std::greater());
  int count = 0;
  double sum = 0;
  for (const double weight : weights)
    if ((sum += weight) < bound) ++count;
  return count;
}

}  // namespace

std::optional<HostileBound> hostile_bound(const topology::MixingSchedule& schedule) {
  const int n = schedule.peers();
  if (n < 2 || schedule.period() != 1) return std::nullopt;
  const auto w = schedule.at(0);
  if (!w->symmetric()) return std::nullopt;
  for (int i = 0; i < n; ++i)
    if (w->self_weight(i) < 0) return std::nullopt;  // the bound is of weights ≥ 0
  const auto ends = topology::symmetric_ends(*w, schedule.lattice());
  if (!ends) return std::nullopt;
  // √δ is below the positive root of δ + c √δ = γ.
  const double gap = 1 - std::max(std::abs(ends->low), std::abs(ends->high));
  const double c = 1.25 * std::sqrt(2 * (1 - ends->low));
  const double root = (std::sqrt(c * c + 4 * std::max(gap, 0.0)) - c) / 2;
  HostileBound bound{root * root, std::numeric_limits<int>::max()};
  for (int i = 0; i < n; ++i)
    bound.neighbours =
        std::min(bound.neighbours, lighter_neighbours(w->in_neighbours(i), bound.weight));
  return bound;
}

}  // namespace gossamer::theory
