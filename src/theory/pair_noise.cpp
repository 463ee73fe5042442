#include "theory/pair_noise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/check.hpp"
#include "base/linear_algebra/dense.hpp"

namespace gossamer::theory {
namespace {

/// (Σ_S⁻¹)_ii of the peers that are not in S, of which `rest` has the numbers, ascending.
Eigen::VectorXd inverse_diagonal(const topology::Graph& neighbours, const PairNoise& noise,
                                 const std::vector<int>& rest) {
  std::vector<Eigen::Index> place(neighbours.out.size(), -1);
  for (std::size_t k = 0; k < rest.size(); ++k)
    place[static_cast<std::size_t>(rest[k])] = static_cast<Eigen::Index>(k);
  const auto n = static_cast<Eigen::Index>(rest.size());
  const double shared = noise.shared * noise.shared;
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Identity(n, n) * (noise.own * noise.own);
  for (Eigen::Index k = 0; k < n; ++k)
    for (const int j :
         neighbours.out[static_cast<std::size_t>(rest[static_cast<std::size_t>(k)])]) {
      const Eigen::Index other = place[static_cast<std::size_t>(j)];
      if (other < 0) continue;
      covariance(k, k) += shared;
      covariance(k, other) -= shared;
    }
  const std::optional<PositiveInverse> inverse = invert_positive(covariance);
  GOSSAMER_CHECK(inverse.has_value(), "a covariance with σ > 0 is positive definite");
  return inverse->inverse.diagonal();
}

/// The next set of as many numbers below n in lexicographic order. False after the last one.
bool next_set(std::vector<int>& set, int n) {
  const auto size = static_cast<int>(set.size());
  for (int k = size - 1; k >= 0; --k) {
    int& number = set[static_cast<std::size_t>(k)];
    if (number == n - size + k) continue;
    std::iota(set.begin() + k, set.end(), number + 1);
    return true;
  }
  return false;
}

}  // namespace

std::vector<double> effective_noise(const topology::Graph& neighbours, const PairNoise& noise) {
  const auto n = neighbours.peers();
  GOSSAMER_CHECK(noise.own > 0 && noise.colluding >= 0 && noise.colluding < n,
                 "peers have noise of their own, and one at least does not collude");
  std::vector<double> least(neighbours.out.size(), std::numeric_limits<double>::infinity());
  std::vector<int> colluding(static_cast<std::size_t>(noise.colluding));
  std::iota(colluding.begin(), colluding.end(), 0);
  do {
    std::vector<int> rest;
    for (int i = 0; i < n; ++i)
      if (!std::ranges::binary_search(colluding, i)) rest.push_back(i);
    const Eigen::VectorXd inverse = inverse_diagonal(neighbours, noise, rest);
    for (std::size_t k = 0; k < rest.size(); ++k) {
      double& deviation = least[static_cast<std::size_t>(rest[k])];
      deviation = std::min(deviation, 1 / std::sqrt(inverse[static_cast<Eigen::Index>(k)]));
    }
  } while (next_set(colluding, n));
  // Rounding alone has it below.
  for (double& deviation : least) deviation = std::max(deviation, noise.own);
  return least;
}

double effective_noise_cost(int peers, int colluding) {
  double sets = 1;
  for (int k = 0; k < colluding; ++k) sets *= static_cast<double>(peers - k) / (k + 1);
  return sets * std::pow(peers, 3);
}

double own_noise_for(double target, const topology::Graph& neighbours, PairNoise noise) {
  // σ ≤ effective noise ≤ σ √n.
  double low = target / std::sqrt(static_cast<double>(neighbours.peers())) / 2, high = target;
  while (high - low > 1e-4 * low) {
    noise.own = (low + high) / 2;
    (std::ranges::min(effective_noise(neighbours, noise)) >= target ? high : low) = noise.own;
  }
  return high;
}

}  // namespace gossamer::theory
