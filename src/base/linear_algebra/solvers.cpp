#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <Eigen/QR>

#include "base/linear_algebra/dense.hpp"

namespace gossamer {

Eigen::VectorXd solve(const Eigen::MatrixXd& a, const Eigen::VectorXd& b) {
  return a.partialPivLu().solve(b);
}

Eigen::VectorXd solve_semidefinite(const Eigen::MatrixXd& a, const Eigen::VectorXd& b,
                                   int refinements) {
  const Eigen::LDLT<Eigen::MatrixXd> factors(a);
  Eigen::VectorXd x = factors.solve(b);
  for (int pass = 0; pass < refinements; ++pass) x += factors.solve(b - a * x);
  return x;
}

std::optional<PositiveInverse> invert_positive(const Eigen::MatrixXd& a) {
  const Eigen::LLT<Eigen::MatrixXd> factors(a);
  if (factors.info() != Eigen::Success) return std::nullopt;
  return PositiveInverse{factors.solve(Eigen::MatrixXd::Identity(a.rows(), a.cols())),
                         2 * factors.matrixLLT().diagonal().array().log().sum()};
}

QrFactors qr(const Eigen::MatrixXd& a) {
  const Eigen::HouseholderQR<Eigen::MatrixXd> factors(a);
  return {factors.householderQ(), factors.matrixQR().diagonal()};
}

Eigen::MatrixXd product(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b, double scale) {
  return scale * a * b;
}

Eigen::MatrixXd gram_of_rows(const Eigen::MatrixXd& a) { return a * a.transpose(); }

Eigen::MatrixXd gram_of_columns(const Eigen::MatrixXd& a) { return a.transpose() * a; }

}  // namespace gossamer
