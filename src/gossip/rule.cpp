#include "gossip/rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gossamer::gossip {

SquaredDistances::SquaredDistances(const SquaredDistances& of_rows,
                                   const std::vector<std::vector<double>>& weights)
    : SquaredDistances(weights.size()) {
  const std::size_t m = of_rows.rows();
  std::vector<double> difference(m);
  for (std::size_t p = 0; p < rows_; ++p)
    for (std::size_t q = p + 1; q < rows_; ++q) {
      for (std::size_t k = 0; k < m; ++k) difference[k] = weights[p][k] - weights[q][k];
      double sum = 0;
      for (std::size_t k = 0; k < m; ++k)
        for (std::size_t l = k + 1; l < m; ++l)
          sum -= difference[k] * difference[l] * of_rows(k, l);
      set(p, q, std::max(0.0, sum));
    }
}

void SquaredDistances::set(std::size_t i, std::size_t j, double squared_distance) {
  const double value = squared_distance <= kFarthest ? squared_distance : kFarthest;
  values_[i * rows_ + j] = values_[j * rows_ + i] = value;
}

// ‖v − row_j‖² = Σ_k a_k D_kj − ½ Σ_kl a_k a_l D_kl, for v = Σ_k a_k row_k.
std::vector<double> SquaredDistances::from(std::span<const double> weights) const {
  std::vector<double> to(rows_, 0.0);
  for (std::size_t j = 0; j < rows_; ++j)
    for (std::size_t k = 0; k < rows_; ++k) to[j] += weights[k] * (*this)(k, j);
  double within = 0;
  for (std::size_t k = 0; k < rows_; ++k) within += weights[k] * to[k] / 2;
  for (double& squared : to) squared = std::sqrt(std::max(0.0, squared - within));
  return to;
}

std::vector<std::size_t> SquaredDistances::nearest_to(std::size_t i) const {
  std::vector<std::size_t> order(rows_);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::swap(order[0], order[i]);
  std::sort(order.begin() + 1, order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair((*this)(i, a), a) < std::pair((*this)(i, b), b);
  });
  return order;
}

double Neighbourhood::hostile_weight(int hostile) const {
  std::vector<double> largest(weights.begin() + 1, weights.end());
  std::sort(largest.begin(), largest.end(), std::greater<>());
  largest.resize(std::min(largest.size(), static_cast<std::size_t>(hostile)));
  return std::accumulate(largest.begin(), largest.end(), 0.0);
}

int RuleKind::most_hostile(int neighbours) const {
  int hostile = 0;
  while (least_neighbours != nullptr && least_neighbours(hostile + 1) <= neighbours) ++hostile;
  return hostile;
}

Result<RuleKind> find_rule(const std::string& name) {
  std::string names;
  for (RuleKind& known : rules::catalog()) {
    if (known.name == name) return std::move(known);
    names += (names.empty() ? "" : ", ") + known.name;
  }
  return invalid_error(fmt::format("mixing.rule: unknown rule '{}'; there are: {}", name, names));
}

ParameterNotes hostile_notes() {
  return {.help = "b: hostile neighbours, of each peer, that the rule withstands",
          .minimum = 0,
          .maximum = 65535,
          .unit = "peers"};
}

const ParameterSet<HostileOptions>& hostile_parameters() {
  static const auto parameters =
      ParameterSet<HostileOptions>().add("hostile", &HostileOptions::hostile, hostile_notes());
  return parameters;
}

std::vector<double> clipped_weights(const Neighbourhood& hood, double radius) {
  std::vector<double> weights = hood.weights;
  for (std::size_t j = 1; j < hood.rows(); ++j) {
    const double distance = std::sqrt(hood.distances(0, j));
    if (distance > radius) weights[j] *= radius / distance;
  }
  return weights;
}

}  // namespace gossamer::gossip
