#include "base/linear_algebra/sparse_cholesky.hpp"

#include <Eigen/SparseCholesky>

#include <optional>

namespace gossamer {
namespace {

using SparseMatrix = Eigen::SparseMatrix<double>;

/// Eigen's factorisation, with access to the number of non-zeros that it counts beforehand.
class Factors : public Eigen::SimplicialLDLT<SparseMatrix> {
 public:
  bool try_factorise(const SparseMatrix& matrix, double most_flops) {
    analyzePattern(matrix);
    double flops = 0;
    for (const int below : m_nonZerosPerCol) flops += static_cast<double>(below) * below;
    if (flops > most_flops) return false;
    factorize(matrix);
    return info() == Eigen::Success;
  }
};

}  // namespace

struct SparseCholesky::Implementation {
  SparseMatrix matrix;
  std::optional<Factors> factors;
};

SparseCholesky::SparseCholesky(int n, const std::vector<Entry>& entries)
    : implementation_(std::make_unique<Implementation>()) {
  std::vector<Eigen::Triplet<double>> triplets;
  triplets.reserve(entries.size());
  for (const auto& [row, column, value] : entries) triplets.emplace_back(row, column, value);
  implementation_->matrix.resize(n, n);
  implementation_->matrix.setFromTriplets(triplets.begin(), triplets.end());
}

SparseCholesky::~SparseCholesky() = default;

void SparseCholesky::add_to_diagonal(double shift) {
  SparseMatrix& matrix = implementation_->matrix;
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) matrix.coeffRef(i, i) += shift;
}

bool SparseCholesky::factorise(double most_flops) {
  auto& factors = implementation_->factors.emplace();
  if (factors.try_factorise(implementation_->matrix, most_flops)) return true;
  implementation_->factors.reset();
  return false;
}

Eigen::Index SparseCholesky::negative_pivots() const {
  return (implementation_->factors->vectorD().array() < 0).count();
}

Eigen::VectorXd SparseCholesky::solve(const Eigen::VectorXd& b) const {
  return implementation_->factors->solve(b);
}

}  // namespace gossamer
