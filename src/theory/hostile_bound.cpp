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

/// The largest weight of a neighbour of a peer whose neighbours do not weigh the same; 0: no peer
/// has such neighbours.
double uneven_weight(const topology::MixingMatrix& w) {
  constexpr double kRounding = 1e-9;
  double uneven = 0;
  for (int i = 0; i < w.peers(); ++i) {
    if (w.in_neighbours(i).empty()) continue;
    const auto [least, most] =
        std::ranges::minmax(w.in_neighbours(i), {}, &topology::Neighbour::weight);
    if (most.weight - least.weight > kRounding) uneven = std::max(uneven, most.weight);
  }
  return uneven;
}

/// Whether every x nears consensus: with eigenvalues of L between `low` and `high`, and rows of
/// weight `clipped`.
bool cs_plus_shrinks(double low, double high, double clipped) {
  if (low <= 0) return false;
  // Of the part p of ‖x‖² at `high`; concave in p.
  const auto factor = [&](double p) {
    return std::sqrt((1 - p) * (1 - low) * (1 - low) + p * (1 - high) * (1 - high)) +
           std::sqrt(2 * clipped * ((1 - p) * low + p * high));
  };
  double left = 0, right = 1;
  for (int step = 0; step < 100; ++step) {
    const double third = (right - left) / 3;
    if (factor(left + third) < factor(right - third)) left += third;
    else right -= third;
  }
  return std::max({factor(left), factor(0), factor(1)}) < 1;
}

/// The largest δ at which a round of CS+ shrinks the distance, to rounding.
double cs_plus_weight(const topology::MixingMatrix& w, const topology::SpectrumEnds& ends) {
  const double uneven = uneven_weight(w);
  double least = 0, most = 1;
  for (int step = 0; step < 60; ++step) {
    const double weight = (least + most) / 2;
    const bool shrinks = cs_plus_shrinks(1 - ends.high - weight, 1 - ends.low, 2 * weight + uneven);
    (shrinks ? least : most) = weight;
  }
  return least;
}

HostileBound bound_of(const topology::MixingMatrix& w, double weight) {
  HostileBound bound{weight, std::numeric_limits<int>::max()};
  for (int i = 0; i < w.peers(); ++i)
    bound.neighbours = std::min(bound.neighbours, lighter_neighbours(w.in_neighbours(i), weight));
  return bound;
}

}  // namespace

std::string no_hostile_bounds(const topology::MixingSchedule& schedule) {
  if (schedule.peers() < 2) return "a single peer has no neighbours";
  if (schedule.period() != 1) return "W varies";
  const auto w = schedule.at(0);
  if (!w->symmetric()) return "W is not symmetric";
  for (int i = 0; i < w->peers(); ++i)
    if (w->self_weight(i) < 0) return "W has negative weights";
  return {};
}

std::optional<HostileBounds> hostile_bounds(const topology::MixingSchedule& schedule) {
  if (!no_hostile_bounds(schedule).empty()) return std::nullopt;
  const auto w = schedule.at(0);
  const auto ends = topology::symmetric_ends(*w, schedule.lattice());
  if (!ends) return std::nullopt;
  // √δ is below the positive root of δ + c √δ = γ.
  const double gap = 1 - std::max(std::abs(ends->low), std::abs(ends->high));
  const double c = 1.25 * std::sqrt(2 * (1 - ends->low));
  const double root = (std::sqrt(c * c + 4 * std::max(gap, 0.0)) - c) / 2;
  return HostileBounds{bound_of(*w, root * root), bound_of(*w, cs_plus_weight(*w, *ends))};
}

}  // namespace gossamer::theory
