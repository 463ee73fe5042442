#include "topology/spectrum.hpp"

#include <Eigen/Eigenvalues>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "base/philox.hpp"

namespace gossamer::topology {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// W·x, for one column or many.
RowMajor mixed(const MixingMatrix& w, const RowMajor& x) {
  RowMajor result(x.rows(), x.cols());
  for (int i = 0; i < w.peers(); ++i) {
    result.row(i) = w.self_weight(i) * x.row(i);
    for (const auto& [peer, weight] : w.hears(i)) result.row(i) += weight * x.row(peer);
  }
  return result;
}

bool is_static_and_symmetric(const MixingSchedule& schedule) {
  return schedule.period() == 1 && is_symmetric(*schedule.at(0));
}

// W is doubly stochastic and connected: 1 is its largest eigenvalue, and single. The others' largest modulus is at one end.
double symmetric_radius(const MixingMatrix& w) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(dense(w), Eigen::EigenvaluesOnly);
  GOSSAMER_CHECK(solver.info() == Eigen::Success, "the eigenvalues of a symmetric matrix are found");
  const auto& ascending = solver.eigenvalues();
  return std::max(std::abs(ascending(0)), std::abs(ascending(w.peers() - 2)));
}

// The product P of a period is doubly stochastic, so P − 11ᵀ/n has P's eigenvalues with the single 1 replaced by 0.
double period_radius(const MixingSchedule& schedule) {
  const int n = schedule.peers();
  RowMajor product = RowMajor::Identity(n, n);
  for (int t = 0; t < schedule.period(); ++t) product = mixed(*schedule.at(static_cast<Round>(t)), product);
  product.array() -= 1.0 / n;
  // What is left may be rounding alone, as where a period is the exact average; its τ-th root would look like a spectrum.
  if (product.norm() <= 4 * n * std::numeric_limits<double>::epsilon()) return 0;
  return spectral_radius(product);
}

// ‖W_T…W_1 x‖^{1/T} for one x beside consensus; renormalised every round, the first tenth of the rounds not counted.
double lyapunov_factor(const MixingSchedule& schedule) {
  const int n = schedule.peers();
  RandomStream random(0, kNoPeer, Purpose::topology);
  RowMajor x(n, 1);
  for (int i = 0; i < n; ++i) x(i, 0) = random.next_normal();
  constexpr Round kSettling = kSampledRounds / 10;
  double log_norms = 0;
  for (Round t = 0; t < kSampledRounds; ++t) {
    x.array() -= x.mean();
    x /= x.norm();
    x = mixed(*schedule.at(t), x);
    x.array() -= x.mean();
    const double norm = x.norm();
    if (norm <= 4 * n * std::numeric_limits<double>::epsilon()) return 0;  // exact average: what is left is rounding
    if (t >= kSettling) log_norms += std::log(norm);
  }
  return std::exp(log_norms / static_cast<double>(kSampledRounds - kSettling));
}

}  // namespace

Eigen::MatrixXd dense(const MixingMatrix& w) {
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(w.peers(), w.peers());
  for (int i = 0; i < w.peers(); ++i) {
    matrix(i, i) = w.self_weight(i);
    for (const auto& [peer, weight] : w.hears(i)) matrix(i, peer) = weight;
  }
  return matrix;
}

bool is_symmetric(const MixingMatrix& w) {
  const auto weight_of = [&w](int i, int j) {
    const auto row = w.hears(i);
    const auto before = [](const Neighbour& entry, int peer) { return entry.peer < peer; };
    const auto found = std::lower_bound(row.begin(), row.end(), j, before);
    return found != row.end() && found->peer == j ? found->weight : 0.0;
  };
  for (int i = 0; i < w.peers(); ++i)
    for (const auto& [j, weight] : w.hears(i))
      if (weight_of(j, i) != weight) return false;
  return true;
}

// Gelfand: ρ(A) = lim ‖A^k‖^{1/k}, with k = 1, 2, 4, … by squaring. Needs no convergence of a QR iteration, is a few matrix
// products where a general eigensolver takes 25 n³, and what a squaring rounds enters the estimate divided by k.
// With A_0 = A/s_0 and A_{m+1} = A_m²/s_{m+1}, every norm 1: log ‖A^{2^m}‖^{1/2^m} = Σ_{j≤m} log(s_j) / 2^j.
double spectral_radius(Eigen::MatrixXd matrix) {
  constexpr int kMostSquarings = 60;
  constexpr double kSmallest = 1e-290, kSettled = 1e-14;
  double log_radius = 0, divisor = 1;
  for (int m = 0; m <= kMostSquarings; ++m, divisor *= 2) {
    if (m > 0) matrix = (matrix * matrix).eval();
    const double norm = matrix.norm();
    if (!(norm > kSmallest)) return 0;  // nilpotent
    matrix /= norm;
    const double change = std::log(norm) / divisor;
    log_radius += change;
    if (m > 8 && std::abs(change) < kSettled) break;
  }
  return std::exp(log_radius);
}

double spectral_gap(const MixingSchedule& schedule) {
  if (schedule.peers() == 1) return 1;
  if (is_static_and_symmetric(schedule)) return 1 - symmetric_radius(*schedule.at(0));
  if (schedule.period() == 0) return 1 - lyapunov_factor(schedule);
  return 1 - std::pow(period_radius(schedule), 1.0 / schedule.period());
}

Result<SlowMode> slowest_mode(const MixingSchedule& schedule) {
  if (schedule.peers() == 1) return Error{ErrorKind::invalid, "one peer has no slowest mode: it has nobody to agree with"};
  if (!is_static_and_symmetric(schedule))
    return Error{ErrorKind::invalid, "only a static symmetric mixing matrix has a slowest mode that is one real vector"};
  const int last = schedule.peers() - 1;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(dense(*schedule.at(0)));
  GOSSAMER_CHECK(solver.info() == Eigen::Success, "the eigenvectors of a symmetric matrix are found");
  const auto& ascending = solver.eigenvalues();
  const int slowest = std::abs(ascending(0)) > std::abs(ascending(last - 1)) ? 0 : last - 1;
  return SlowMode{ascending(slowest), solver.eigenvectors().col(slowest)};
}

}  // namespace gossamer::topology
