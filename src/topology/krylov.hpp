// Krylov methods: a few eigenvalues of a large operator from its products with vectors. They work
// on vectors of mean 0, which leaves out the constant vector: a doubly stochastic W has its single
// eigenvalue 1 there, and the gap is below it.
#pragma once

#include <Eigen/Core>

#include <cstdint>
#include <functional>
#include <optional>

#include "topology/mixing_matrix.hpp"

namespace gossamer::topology {

/// y = A x. A keeps vectors of mean 0 at mean 0.
using Operator = std::function<Eigen::VectorXd(const Eigen::VectorXd&)>;

/// Random normal numbers less their mean, equal for equal `which`. Almost surely not orthogonal to
/// any eigenvector.
Eigen::VectorXd generic_vector(int n, std::uint64_t which);

/// W·x.
Eigen::VectorXd mixed(const MixingMatrix& w, const Eigen::VectorXd& x);

/// The smallest and the largest eigenvalue of a symmetric W, without the 1 of the constant vector.
struct SpectrumEnds {
  double low = 0, high = 0;
};

/// The ends of a sparse symmetric W whose rows sum to 1, n ≥ 2. The end nearer to ±1 is found to
/// about 1e-9 of its distance from it; the other one too where `both`. Lanczos with full
/// reorthogonalisation, which is quick where the gap is wide; where it is narrow, Lanczos on the
/// inverse of σ I ∓ W, σ just beyond the end, which graphs with narrow gaps factorise cheaply for
/// the same reason: few edges to cut. None where neither is affordable.
std::optional<SpectrumEnds> sparse_ends(const MixingMatrix& w, bool both);

/// Eigenvalues of a symmetric W beside the 1 of the constant vector, and their vectors (columns,
/// norm 1, mean 0).
struct Modes {
  Eigen::VectorXd values;
  Eigen::MatrixXd vectors;
};

/// The eigenpairs of a sparse symmetric W that a few dozen Lanczos steps find to 1e-8: well
/// separated ones at either end, possibly none; one of several equal eigenvalues. n ≥ 2.
Modes clear_modes(const MixingMatrix& w);

/// The largest modulus of A's eigenvalues on vectors of mean 0, A of n rows, not symmetric:
/// Arnoldi. None where it has not settled to about 1e-9 after kMostArnoldi products.
std::optional<double> arnoldi_radius(const Operator& a, int n);
inline constexpr int kMostArnoldi = 300;

/// The largest of a symmetric positive semidefinite A's eigenvalues on vectors of mean 0, to about
/// 1e-10 of itself: Lanczos. None where it has not settled.
std::optional<double> lanczos_largest(const Operator& a, int n);

}  // namespace gossamer::topology
