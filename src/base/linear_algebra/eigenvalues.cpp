#include <Eigen/Eigenvalues>

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "base/linear_algebra/dense.hpp"

namespace gossamer {
namespace {

using SymmetricSolver = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>;

const SymmetricSolver& converged(const SymmetricSolver& solver) {
  GOSSAMER_CHECK(solver.info() == Eigen::Success, "a symmetric matrix's eigenvalues are found");
  return solver;
}

}  // namespace

SymmetricEigen symmetric_eigen(const Eigen::MatrixXd& a) {
  const SymmetricSolver solver(a);
  return {converged(solver).eigenvalues(), solver.eigenvectors()};
}

Eigen::VectorXd symmetric_eigenvalues(const Eigen::MatrixXd& a) {
  const SymmetricSolver solver(a, Eigen::EigenvaluesOnly);
  return converged(solver).eigenvalues();
}

SymmetricEigen tridiagonal_eigen(const Eigen::VectorXd& diagonal,
                                 const Eigen::VectorXd& subdiagonal) {
  SymmetricSolver solver;
  solver.computeFromTridiagonal(diagonal, subdiagonal);
  return {converged(solver).eigenvalues(), solver.eigenvectors()};
}

Eigen::VectorXcd eigenvalues(const Eigen::MatrixXd& a) {
  return Eigen::EigenSolver<Eigen::MatrixXd>(a, false).eigenvalues();
}

Eigen::MatrixXd real_form(const Eigen::MatrixXcd& a) {
  Eigen::MatrixXd real(2 * a.rows(), 2 * a.rows());
  real << a.real(), -a.imag(), a.imag(), a.real();
  return real;
}

double spectral_norm(const Eigen::MatrixXd& a) {
  return std::sqrt(std::max(symmetric_eigenvalues(gram_of_columns(a)).maxCoeff(), 0.0));
}

}  // namespace gossamer
