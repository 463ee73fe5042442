// The Cholesky factorisation L D Lᵀ of a sparse symmetric matrix. Eigen's templates stay behind it.
#pragma once

#include <Eigen/Core>

#include <memory>
#include <vector>

namespace gossamer {

/// A sparse n × n symmetric matrix, and its factors after `factorise`. One thread at a time.
class SparseCholesky {
 public:
  struct Entry {
    int row, column;
    double value;
  };
  /// Both triangles are given; values of equal places are summed. Each diagonal entry is present.
  SparseCholesky(int n, const std::vector<Entry>& entries);
  ~SparseCholesky();

  void add_to_diagonal(double shift);
  /// False, and there are no factors, where they would take more than `most_flops` floating-point
  /// operations (fill-in) or a pivot is 0.
  bool factorise(double most_flops);
  /// The negative entries of D: by Sylvester's law of inertia, as many as the matrix has negative
  /// eigenvalues. After a factorisation that succeeded.
  Eigen::Index negative_pivots() const;
  /// x with matrix · x = b. After a factorisation that succeeded.
  Eigen::VectorXd solve(const Eigen::VectorXd& b) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace gossamer
