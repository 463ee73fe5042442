// Dense linear algebra: each function against a case that is solved by hand, or against its
// definition.
#include <doctest/doctest.h>

#include <cmath>

#include "base/linear_algebra/dense.hpp"

using namespace gossamer;

TEST_CASE("symmetric eigenvalues ascend, and the eigenvectors have norm 1") {
  Eigen::MatrixXd a(2, 2);
  a << 2, 1, 1, 2;
  const SymmetricEigen eigen = symmetric_eigen(a);
  CHECK(eigen.values[0] == doctest::Approx(1));
  CHECK(eigen.values[1] == doctest::Approx(3));
  CHECK((a * eigen.vectors - eigen.vectors * eigen.values.asDiagonal()).norm() < 1e-14);
  CHECK(eigen.vectors.col(0).norm() == doctest::Approx(1));
  CHECK(symmetric_eigenvalues(a) == eigen.values);
  const SymmetricEigen tridiagonal = tridiagonal_eigen(a.diagonal(), Eigen::VectorXd::Ones(1));
  CHECK((tridiagonal.values - eigen.values).norm() < 1e-14);
}

TEST_CASE("eigenvalues of real and of complex matrices") {
  const auto radius = [](const Eigen::MatrixXd& a) { return eigenvalues(a).cwiseAbs().maxCoeff(); };
  Eigen::MatrixXd rotation(2, 2);
  rotation << 0, -3, 3, 0;  // ±3i
  CHECK(eigenvalues(rotation).real().norm() < 1e-14);
  CHECK(radius(rotation) == doctest::Approx(3));
  // The eigenvalues of a triangular matrix are its diagonal: here 1 and 3 + 4i.
  Eigen::MatrixXcd triangular(2, 2);
  triangular << 1, std::complex<double>(5, -2), 0, std::complex<double>(3, 4);
  CHECK(radius(real_form(triangular)) == doctest::Approx(5));
  // λ² = 2i · 3 = 6i.
  Eigen::MatrixXcd exchange(2, 2);
  exchange << 0, std::complex<double>(0, 2), 3, 0;
  CHECK(radius(real_form(exchange)) == doctest::Approx(std::sqrt(6.0)));
}

TEST_CASE("the inverse of a positive definite matrix, and none of another") {
  Eigen::MatrixXd a(2, 2);
  a << 2, 1, 1, 3;
  const auto inverse = invert_positive(a);
  REQUIRE(inverse.has_value());
  CHECK((a * inverse->inverse - Eigen::MatrixXd::Identity(2, 2)).norm() < 1e-14);
  CHECK(inverse->log_determinant == doctest::Approx(std::log(5.0)));
  a << 4, 2, 2, 1;  // semidefinite
  CHECK_FALSE(invert_positive(a).has_value());
  a(1, 1) = -1;
  CHECK_FALSE(invert_positive(a).has_value());
}

TEST_CASE("the spectral norm is the largest singular value") {
  Eigen::MatrixXd a(3, 2);
  a << 3, 0, 0, -4, 0, 0;
  CHECK(spectral_norm(a) == doctest::Approx(4));
}

TEST_CASE("linear systems, and the factors of QR") {
  Eigen::MatrixXd a(2, 2);
  a << 4, 1, 1, 3;
  const Eigen::Vector2d x(1, -2);
  CHECK((solve(a, a * x) - x).norm() < 1e-14);
  CHECK((solve_semidefinite(a, a * x, 1) - x).norm() < 1e-14);
  const QrFactors factors = qr(a);
  CHECK((factors.q.transpose() * factors.q - Eigen::MatrixXd::Identity(2, 2)).norm() < 1e-14);
  const Eigen::MatrixXd r = factors.q.transpose() * a;
  CHECK(std::abs(r(1, 0)) < 1e-14);
  CHECK((r.diagonal() - factors.r_diagonal).norm() < 1e-14);
  CHECK((product(a, a, 0.5) - 0.5 * (a * a)).norm() < 1e-14);
  CHECK((gram_of_rows(a) - a * a.transpose()).norm() < 1e-14);
  CHECK((gram_of_columns(a) - a.transpose() * a).norm() < 1e-14);
}
