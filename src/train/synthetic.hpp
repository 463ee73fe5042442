// Shared code of the data sets that are generated per peer: spectra, random rotations, and the
// exact optimum of the generated samples. All in double; the samples themselves are float.
#pragma once

#include <Eigen/Core>
#include <cstddef>

#include "base/philox.hpp"
#include "base/result.hpp"
#include "train/dataset.hpp"

namespace gossamer::train {

/// Eigenvalues from 1 down to 1/condition, evenly spaced in their logarithm. One dimension: 1.
Eigen::VectorXd log_spectrum(int dimension, double condition);

/// `count` independent standard normal values.
Eigen::VectorXd normal_vector(int count, RandomStream& random);

/// A rotation from the uniform (Haar) distribution over orthogonal matrices (Stewart 1980): the Q
/// of a normal matrix's QR, its columns' signs set by R's diagonal.
Eigen::MatrixXd random_orthogonal(int dimension, RandomStream& random);

/// An empty regression table for vectors of `dimension` values, `per_peer` training samples for
/// each of `peers` as natural shards, and `test` test samples: features and targets are zero, peer
/// p's samples begin at p · per_peer. Errors (invalid): no peers; more than 2^28 feature values (a
/// gigabyte), with the numbers.
Result<Dataset> regression_table(const char* name, int dimension, int peers, std::size_t per_peer,
                                 std::size_t test);

/// The minimiser of (1/n) Σ_p (1/m_p) Σ_{s of p} ½ (a_s·x − y_s)² over the natural shards as they
/// are stored: normal equations in double, refined once. Relative error about 1e-16 times the
/// Hessian's condition number.
Eigen::VectorXd regression_optimum(const Dataset& data);

}  // namespace gossamer::train
