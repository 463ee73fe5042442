#include "topology/spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/linear_algebra/dense.hpp"
#include "topology/graph.hpp"
#include "topology/lattice.hpp"

namespace gossamer::topology {
namespace {

bool is_static_and_symmetric(const MixingSchedule& schedule) {
  return schedule.period() == 1 && schedule.at(0)->symmetric();
}

/// The ends of a symmetric W by its whole spectrum: 1 is its largest eigenvalue, since W is doubly
/// stochastic.
SpectrumEnds dense_ends(const MixingMatrix& w) {
  const Eigen::VectorXd ascending = symmetric_eigenvalues(dense(w));
  return {ascending(0), ascending(w.peers() - 2)};
}

std::optional<SpectrumEnds> lattice_ends(const MixingMatrix& w, std::span<const int> lattice) {
  const auto eigenvalues = lattice_eigenvalues(w, lattice);
  if (!eigenvalues) return std::nullopt;
  SpectrumEnds ends{1, -1};
  for (std::size_t k = 1; k < eigenvalues->size(); ++k) {
    ends.low = std::min(ends.low, (*eigenvalues)[k].real());
    ends.high = std::max(ends.high, (*eigenvalues)[k].real());
  }
  return ends;
}

std::optional<SpectrumEnds> ends_of(const MixingMatrix& w, std::span<const int> lattice,
                                    bool both) {
  if (const auto ends = lattice_ends(w, lattice)) return ends;
  return w.peers() <= kDense ? dense_ends(w) : sparse_ends(w, both);
}

/// The ends' modulus; 0 where rounding alone is left of the spectrum of an exact average.
double radius_of(const std::optional<SpectrumEnds>& ends) {
  if (!ends) return std::numeric_limits<double>::quiet_NaN();
  const double radius = std::max(std::abs(ends->low), std::abs(ends->high));
  return radius <= 64 * std::numeric_limits<double>::epsilon() ? 0 : radius;
}

/// ρ of a period on a lattice: the waves' eigenvalues multiply.
std::optional<double> lattice_period_radius(const MixingSchedule& schedule) {
  std::vector<double> moduli(static_cast<std::size_t>(schedule.peers()), 1);
  for (int t = 0; t < schedule.period(); ++t) {
    const auto eigenvalues =
        lattice_eigenvalues(*schedule.at(static_cast<Round>(t)), schedule.lattice());
    if (!eigenvalues) return std::nullopt;
    for (std::size_t k = 0; k < moduli.size(); ++k) moduli[k] *= std::abs((*eigenvalues)[k]);
  }
  return *std::max_element(moduli.begin() + 1, moduli.end());
}

// The columns or the rows of a period's product P sum to 1, so P − 11ᵀ/n has P's eigenvalues with
// the single 1 replaced by 0 (Brauer 1952).
double period_radius(const MixingSchedule& schedule) {
  const int n = schedule.peers();
  RowMatrix product = RowMatrix::Identity(n, n);
  for (int t = 0; t < schedule.period(); ++t)
    product = mixed_rows(*schedule.at(static_cast<Round>(t)), product);
  product.array() -= 1.0 / n;
  // What is left may be rounding alone, as where a period is the exact average; its τ-th root would
  // look like a spectrum.
  if (product.norm() <= 4 * n * std::numeric_limits<double>::epsilon()) return 0;
  return spectral_radius(product);
}

double sparse_period_radius(const MixingSchedule& schedule) {
  const Operator period = [&schedule](const Eigen::VectorXd& x) {
    Eigen::VectorXd result = x;
    for (int t = 0; t < schedule.period(); ++t)
      result = mixed(*schedule.at(static_cast<Round>(t)), result);
    return result;
  };
  return arnoldi_radius(period, schedule.peers())
      .value_or(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

Eigen::MatrixXd dense(const MixingMatrix& w) {
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(w.peers(), w.peers());
  for (int i = 0; i < w.peers(); ++i) {
    matrix(i, i) = w.self_weight(i);
    for (const auto& [peer, weight] : w.in_neighbours(i)) matrix(i, peer) = weight;
  }
  return matrix;
}

RowMatrix mixed_rows(const MixingMatrix& w, const RowMatrix& x) {
  RowMatrix result(x.rows(), x.cols());
  for (int i = 0; i < w.peers(); ++i) {
    result.row(i) = w.self_weight(i) * x.row(i);
    for (const auto& [peer, weight] : w.in_neighbours(i)) result.row(i) += weight * x.row(peer);
  }
  return result;
}

// Gelfand: ρ(A) = lim ‖A^k‖^{1/k}, with k = 1, 2, 4, … by squaring. Needs no convergence of a QR
// iteration, is a few matrix products where a general eigensolver takes 25 n³, and what a squaring
// rounds enters the estimate divided by k. With A_0 = A/s_0 and A_{m+1} = A_m²/s_{m+1}, every norm
// 1: log ‖A^{2^m}‖^{1/2^m} = Σ_{j≤m} log(s_j) / 2^j.
double spectral_radius(Eigen::MatrixXd matrix) {
  constexpr int kMostSquarings = 60;
  constexpr double kSmallest = 1e-290, kSettled = 1e-14;
  double log_radius = 0, divisor = 1;
  for (int m = 0; m <= kMostSquarings; ++m, divisor *= 2) {
    if (m > 0) matrix = product(matrix, matrix);
    const double norm = matrix.norm();
    if (!(norm > kSmallest)) return 0;  // nilpotent
    matrix /= norm;
    const double change = std::log(norm) / divisor;
    log_radius += change;
    if (m > 8 && std::abs(change) < kSettled) break;
  }
  return std::exp(log_radius);
}

std::optional<SpectrumEnds> symmetric_ends(const MixingMatrix& w, std::span<const int> lattice) {
  return ends_of(w, lattice, true);
}

std::optional<double> lowest_eigenvalue(const MixingSchedule& schedule) {
  if (schedule.peers() < 2 || schedule.period() != 1 || !schedule.at(0)->symmetric())
    return std::nullopt;
  const auto ends = symmetric_ends(*schedule.at(0), schedule.lattice());
  return ends ? std::optional(ends->low) : std::nullopt;
}

// Where the peers are alike in law, E WᵀW has one eigenvalue on all vectors beside consensus: its
// trace without the 1 of consensus, divided by n − 1. The trace is ‖W‖_F², the same in all rounds.
double mean_square_factor(const MixingSchedule& schedule) {
  const int n = schedule.peers();
  if (n == 1) return 0;
  const RandomLaw law = schedule.law();
  if (law.mean_square_factor) return law.mean_square_factor(schedule.weighing().lazy);
  const auto w = schedule.at(0);
  if (!law.alike || !w->doubly_stochastic()) return std::numeric_limits<double>::quiet_NaN();
  double squares = 0;
  for (int i = 0; i < n; ++i) {
    squares += w->self_weight(i) * w->self_weight(i);
    for (const auto& [peer, weight] : w->in_neighbours(i)) squares += weight * weight;
  }
  return std::max(0.0, (squares - 1) / (n - 1));
}

double spectral_gap(const MixingSchedule& schedule) {
  if (schedule.peers() == 1) return 1;
  if (is_static_and_symmetric(schedule))
    return 1 - radius_of(ends_of(*schedule.at(0), schedule.lattice(), false));
  if (schedule.period() == 0) return 1 - std::sqrt(mean_square_factor(schedule));
  double radius = 0;
  if (const auto found = lattice_period_radius(schedule)) radius = *found;
  else if (schedule.peers() <= kDenseProduct) radius = period_radius(schedule);
  else if (!rounds_to_exact(schedule)) radius = sparse_period_radius(schedule);
  return 1 - std::pow(radius, 1.0 / schedule.period());
}

// Three vectors, mixed together: one might lie where a product vanishes that is not the average,
// three do not.
std::optional<Round> rounds_to_exact(const MixingSchedule& schedule) {
  constexpr int kVectors = 3;
  constexpr double kJump = 1e-6;
  const int n = schedule.peers();
  if (n == 1) return 0;
  if (schedule.period() == 0)  // two peers are a pair in every round
    return n == 2 && mean_square_factor(schedule) == 0 ? std::optional<Round>(1) : std::nullopt;
  if (schedule.weighing().only_rows())  // what peers agree on need not be the average
    for (int t = 0; t < schedule.period(); ++t)
      if (!schedule.at(static_cast<Round>(t))->doubly_stochastic()) return std::nullopt;
  RowMatrix x(n, kVectors);
  for (int v = 0; v < kVectors; ++v)
    x.col(v) = generic_vector(n, static_cast<std::uint64_t>(v)).normalized();
  const double rounding = 64 * std::sqrt(n) * std::numeric_limits<double>::epsilon();
  const auto period = static_cast<Round>(schedule.period());
  const Round rounds = is_static_and_symmetric(schedule) ? 1 : std::max<Round>(2 * period, 64);
  double before = 1;
  for (Round t = 0; t < rounds && before > rounding; ++t) {
    x = mixed_rows(*schedule.at(t), x);
    x.rowwise() -= x.colwise().mean();
    const double left = x.colwise().norm().maxCoeff();
    if (left <= std::min(rounding, kJump * before)) return t + 1;
    before = left;
  }
  return std::nullopt;
}

// For a symmetric W the norm is an eigenvalue's modulus, and on a lattice too (W is normal); else
// the root of one of WᵀW's.
double round_gap(const MixingMatrix& w, std::span<const int> lattice) {
  const int n = w.peers();
  if (n == 1) return 1;
  if (const auto eigenvalues = lattice_eigenvalues(w, lattice)) {
    double radius = 0;
    for (std::size_t k = 1; k < eigenvalues->size(); ++k)
      radius = std::max(radius, std::abs((*eigenvalues)[k]));
    return 1 - radius;
  }
  if (!w.doubly_stochastic()) return std::numeric_limits<double>::quiet_NaN();
  if (w.symmetric())
    return find_unreachable(graph_of(w)) ? 0 : 1 - radius_of(ends_of(w, lattice, false));
  const Operator square = [&w](const Eigen::VectorXd& x) {
    const Eigen::VectorXd y = mixed(w, x);
    Eigen::VectorXd result(x.size());
    for (int i = 0; i < w.peers(); ++i) result(i) = w.self_weight(i) * y(i);
    for (int i = 0; i < w.peers(); ++i)
      for (const auto& [peer, weight] : w.in_neighbours(i)) result(peer) += weight * y(i);
    return result;
  };
  const auto largest = lanczos_largest(square, n);
  return largest ? 1 - std::sqrt(std::max(*largest, 0.0))
                 : std::numeric_limits<double>::quiet_NaN();
}

Result<SlowMode> slowest_mode(const MixingSchedule& schedule) {
  if (schedule.peers() == 1) return invalid_error("one peer has no slowest mode");
  if (!is_static_and_symmetric(schedule))
    return invalid_error(
        "only a static symmetric mixing matrix has a slowest mode that is one real vector");
  const int last = schedule.peers() - 1;
  const auto [ascending, vectors] = symmetric_eigen(dense(*schedule.at(0)));
  const int slowest = std::abs(ascending(0)) > std::abs(ascending(last - 1)) ? 0 : last - 1;
  return SlowMode{ascending(slowest), vectors.col(slowest)};
}

}  // namespace gossamer::topology
