// Dense products, decompositions and linear systems in double precision. Eigen's solvers are
// templates that take ten seconds a file to compile; only the sources of this folder include them.
// Any thread. No function changes its arguments or reports an error: a matrix that a caller may
// not pass is named at each function.
#pragma once

#include <Eigen/Core>

#include <optional>

namespace gossamer {

/// Eigenvalues of a symmetric matrix in ascending order, and eigenvectors of norm 1 as columns.
struct SymmetricEigen {
  Eigen::VectorXd values;
  Eigen::MatrixXd vectors;
};

/// `a` is symmetric and finite; only its lower triangle is read. O(n³).
SymmetricEigen symmetric_eigen(const Eigen::MatrixXd& a);
/// The values of symmetric_eigen alone, in about a quarter of the time.
Eigen::VectorXd symmetric_eigenvalues(const Eigen::MatrixXd& a);
/// Of the symmetric tridiagonal matrix with `diagonal` (n ≥ 1) and `subdiagonal` (n − 1).
SymmetricEigen tridiagonal_eigen(const Eigen::VectorXd& diagonal,
                                 const Eigen::VectorXd& subdiagonal);
/// All eigenvalues of a finite square matrix, in no particular order. O(n³).
Eigen::VectorXcd eigenvalues(const Eigen::MatrixXd& a);
/// The real matrix of twice the size that has the eigenvalues of the square matrix `a` and their
/// conjugates: [Re a, −Im a; Im a, Re a]. Eigen's solver of complex matrices takes ten seconds to
/// compile.
Eigen::MatrixXd real_form(const Eigen::MatrixXcd& a);
/// The largest singular value of a finite matrix of at least one column, the root of the largest
/// eigenvalue of aᵀ a. O(n³).
double spectral_norm(const Eigen::MatrixXd& a);

/// x with a x = b, `a` square and not singular (LU with partial pivoting).
Eigen::VectorXd solve(const Eigen::MatrixXd& a, const Eigen::VectorXd& b);
/// x with a x = b, `a` symmetric positive semidefinite (LDLᵀ), refined `refinements` times by
/// x ← x + a⁻¹ (b − a x).
Eigen::VectorXd solve_semidefinite(const Eigen::MatrixXd& a, const Eigen::VectorXd& b,
                                   int refinements = 0);

/// Of a symmetric positive definite matrix.
struct PositiveInverse {
  Eigen::MatrixXd inverse;
  double log_determinant = 0;
};
/// By Cholesky (LLᵀ); only the lower triangle of the symmetric `a` is read. None where `a` is not
/// positive definite.
std::optional<PositiveInverse> invert_positive(const Eigen::MatrixXd& a);

/// a = Q R by Householder reflections, `a` square. Signs of R's diagonal are as they come.
struct QrFactors {
  Eigen::MatrixXd q;
  Eigen::VectorXd r_diagonal;
};
QrFactors qr(const Eigen::MatrixXd& a);

/// scale · a b.
Eigen::MatrixXd product(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b, double scale = 1);
/// a aᵀ.
Eigen::MatrixXd gram_of_rows(const Eigen::MatrixXd& a);
/// aᵀ a.
Eigen::MatrixXd gram_of_columns(const Eigen::MatrixXd& a);

}  // namespace gossamer
