#include "topology/krylov.hpp"

#include <algorithm>
#include <cmath>

#include "base/linear_algebra/dense.hpp"
#include "base/linear_algebra/sparse_cholesky.hpp"
#include "base/philox.hpp"

namespace gossamer::topology {
namespace {

constexpr std::int64_t kMostBasisNumbers = 40'000'000;  // 320 MB of doubles
constexpr double kNothingLeft = 1e-13;  // of a vector of norm 1: the Krylov space is exhausted

void centre(Eigen::VectorXd& x) { x.array() -= x.mean(); }

/// An orthonormal basis of the Krylov space of an operator on vectors of mean 0, and the operator's
/// projection onto it: A V_m = V_m H_m + h_{m+1,m} v_{m+1} eᵀ_m. For a symmetric operator H is
/// tridiagonal but for rounding (Lanczos).
class KrylovSpace {
 public:
  KrylovSpace(const Operator& a, int n, int most)
      : a_(a),
        n_(n),
        most_(static_cast<int>(std::min<std::int64_t>(
            {most, n - 1, std::max<std::int64_t>(kMostBasisNumbers / n, 20)}))),
        basis_(n, most_ + 1),
        h_(Eigen::MatrixXd::Zero(most_ + 1, most_)) {
    basis_.col(0) = generic_vector(n, 0).normalized();
  }

  int size() const { return size_; }
  bool exhausted() const { return exhausted_; }
  bool full() const { return exhausted_ || size_ == most_; }
  auto basis() const { return basis_.leftCols(size_); }
  auto projection() const { return h_.topLeftCorner(size_, size_); }
  /// h_{m+1,m}: how far A leads out of the space.
  double remainder() const { return exhausted_ ? 0 : h_(size_, size_ - 1); }

  void grow() {
    Eigen::VectorXd next = a_(basis_.col(size_));
    centre(next);
    const double before = next.norm();
    auto coefficients = h_.col(size_).head(size_ + 1);
    for (int pass = 0; pass < 2; ++pass) {  // twice is enough (Kahan; Parlett 1998)
      const Eigen::VectorXd along = basis_.leftCols(size_ + 1).transpose() * next;
      next -= basis_.leftCols(size_ + 1) * along;
      coefficients += along;
    }
    centre(next);
    const double left = next.norm();
    h_(size_ + 1, size_) = left;
    ++size_;
    exhausted_ = left <= kNothingLeft * std::max(before, 1e-3) || size_ == n_ - 1;
    if (!exhausted_) basis_.col(size_) = next / left;
  }

 private:
  const Operator& a_;
  int n_, most_, size_ = 0;
  bool exhausted_ = false;
  Eigen::MatrixXd basis_, h_;
};

/// Extreme eigenvalues of the projection, and how far each may be from one of the operator's.
struct Ritz {
  double low, high, low_residual, high_residual;
};

Ritz ritz_of(const KrylovSpace& space) {
  const Eigen::MatrixXd symmetric = (space.projection() + space.projection().transpose()) / 2;
  const auto [values, vectors] = tridiagonal_eigen(symmetric.diagonal(), symmetric.diagonal<1>());
  const Eigen::Index last = space.size() - 1;
  return {values(0), values(last), space.remainder() * std::abs(vectors(last, 0)),
          space.remainder() * std::abs(vectors(last, last))};
}

/// An eigenvalue's error is about the square of its residual over its distance to the next (Parlett
/// 1998, 4.5): a residual of 1e-7 of the distance from ±1 is an error far below 1e-9 of it.
bool settled(double value, double residual) {
  return residual <= 1e-7 * std::max(1 - std::abs(value), 1e-9);
}

/// The high end of sign · W, by Lanczos on the inverse of (shift I − sign · W), the shift a little
/// beyond the end. `nearby`: an estimate from inside; `residual`: about how far off it may be. By
/// Sylvester's law of inertia the factors' signs show whether the shift lies beyond every
/// eigenvalue, but for the 1 of the constant vector; while it does not, it moves out.
std::optional<double> inverted_end(const MixingMatrix& w, double sign, double nearby,
                                   double residual) {
  constexpr double kMostFlops = 2e9;
  std::vector<SparseCholesky::Entry> entries;
  for (int i = 0; i < w.peers(); ++i) {
    entries.push_back({i, i, -sign * w.self_weight(i)});
    for (const auto& [peer, weight] : w.in_neighbours(i))
      entries.push_back({i, peer, -sign * weight});
  }
  SparseCholesky shifted(w.peers(), entries);
  const double farthest = 1 + 1e-3 * std::max(1 - nearby, 1e-9);
  double at = 0;
  for (double margin = std::max(residual / 4, 1e-10);; margin *= 4) {
    const double shift = std::min(nearby + margin, farthest);
    shifted.add_to_diagonal(shift - at);
    at = shift;
    if (!shifted.factorise(kMostFlops)) return std::nullopt;
    if (shifted.negative_pivots() > (sign > 0 && shift < 1 ? 1 : 0)) {
      if (shift == farthest) return std::nullopt;
      continue;
    }
    const Operator inverse = [&shifted](const Eigen::VectorXd& x) { return shifted.solve(x); };
    const auto largest = lanczos_largest(inverse, w.peers());
    if (!largest) return std::nullopt;
    return shift - 1 / *largest;
  }
}

}  // namespace

Eigen::VectorXd generic_vector(int n, std::uint64_t which) {
  RandomStream random(0, kNoPeer, Purpose::topology, which);
  Eigen::VectorXd x(n);
  for (int i = 0; i < n; ++i) x(i) = random.next_normal();
  centre(x);
  return x;
}

Eigen::VectorXd mixed(const MixingMatrix& w, const Eigen::VectorXd& x) {
  Eigen::VectorXd result(x.size());
  for (int i = 0; i < w.peers(); ++i) {
    double sum = w.self_weight(i) * x(i);
    for (const auto& [peer, weight] : w.in_neighbours(i)) sum += weight * x(peer);
    result(i) = sum;
  }
  return result;
}

std::optional<SpectrumEnds> sparse_ends(const MixingMatrix& w, bool both) {
  constexpr int kMostLanczos = 240, kLook = 20;
  const Operator mix = [&w](const Eigen::VectorXd& x) { return mixed(w, x); };
  KrylovSpace space(mix, w.peers(), kMostLanczos);
  Ritz ritz{};
  bool low_settled = false, high_settled = false;
  while (true) {
    space.grow();
    if (space.size() % kLook != 0 && !space.full()) continue;
    ritz = ritz_of(space);
    low_settled = settled(ritz.low, ritz.low_residual),
    high_settled = settled(ritz.high, ritz.high_residual);
    // An end that is clearly not the nearer one to ±1 need not be known exactly.
    if (!both && high_settled && std::abs(ritz.low) + 10 * ritz.low_residual < ritz.high)
      low_settled = true;
    if (!both && low_settled && std::abs(ritz.high) + 10 * ritz.high_residual < -ritz.low)
      high_settled = true;
    if ((low_settled && high_settled) || space.full()) break;
  }
  SpectrumEnds ends{ritz.low, ritz.high};
  if (!high_settled) {
    const auto high = inverted_end(w, 1, ritz.high, ritz.high_residual);
    if (!high) return std::nullopt;
    ends.high = *high;
    if (!both && std::abs(ritz.low) + 10 * ritz.low_residual < ends.high) low_settled = true;
  }
  if (!low_settled) {
    const auto low = inverted_end(w, -1, -ritz.low, ritz.low_residual);
    if (!low) return std::nullopt;
    ends.low = -*low;
  }
  return ends;
}

Modes clear_modes(const MixingMatrix& w) {
  constexpr int kSteps = 60;
  const Operator mix = [&w](const Eigen::VectorXd& x) { return mixed(w, x); };
  KrylovSpace space(mix, w.peers(), kSteps);
  while (!space.full()) space.grow();
  const Eigen::MatrixXd symmetric = (space.projection() + space.projection().transpose()) / 2;
  const auto [values, vectors] = symmetric_eigen(symmetric);
  std::vector<Eigen::Index> found;
  for (Eigen::Index i = 0; i < space.size(); ++i)
    if (space.remainder() * std::abs(vectors(space.size() - 1, i)) <= 1e-8) found.push_back(i);
  Modes modes{Eigen::VectorXd(found.size()), Eigen::MatrixXd(w.peers(), found.size())};
  for (std::size_t i = 0; i < found.size(); ++i) {
    modes.values(static_cast<Eigen::Index>(i)) = values(found[i]);
    modes.vectors.col(static_cast<Eigen::Index>(i)) = space.basis() * vectors.col(found[i]);
  }
  return modes;
}

std::optional<double> lanczos_largest(const Operator& a, int n) {
  constexpr int kMost = 240, kLook = 5;
  KrylovSpace space(a, n, kMost);
  while (true) {
    space.grow();
    if (space.size() % kLook != 0 && !space.full()) continue;
    const Ritz ritz = ritz_of(space);
    if (space.exhausted() || ritz.high_residual <= 1e-8 * ritz.high) return ritz.high;
    if (space.full()) return std::nullopt;
  }
}

std::optional<double> arnoldi_radius(const Operator& a, int n) {
  constexpr int kLook = 20;
  KrylovSpace space(a, n, kMostArnoldi);
  double last = -1;
  int unchanged = 0;
  while (true) {
    space.grow();
    if (space.size() % kLook != 0 && !space.full()) continue;
    const double radius = eigenvalues(Eigen::MatrixXd(space.projection())).cwiseAbs().maxCoeff();
    unchanged = std::abs(radius - last) <= 1e-10 * radius ? unchanged + 1 : 0;
    if (space.exhausted() || unchanged >= 2) return radius;
    if (space.full()) return std::nullopt;
    last = radius;
  }
}

}  // namespace gossamer::topology
