// How fast a mixing matrix makes peers agree: its eigenvalues beside the single 1.
#pragma once

#include <Eigen/Core>

#include "topology/mixing_matrix.hpp"

namespace gossamer::topology {

/// W whole, n × n.
Eigen::MatrixXd dense(const MixingMatrix& w);

/// W equals its transpose, bit by bit.
bool is_symmetric(const MixingMatrix& w);

/// The largest modulus of a square matrix's eigenvalues, within about 1e-12 relative where they are well conditioned.
/// O(n³), about 45 matrix products.
double spectral_radius(Eigen::MatrixXd matrix);

/// 1 − ρ(W_τ…W_1)^{1/τ}, where ρ is the largest modulus beside the single eigenvalue 1: per round, the distance to consensus
/// shrinks by the factor 1 − gap in the long run. 1 for one peer, and where a period is the exact average. Without a period:
/// the Lyapunov rate of one generic start, estimated over kSampledRounds rounds. O(n³).
double spectral_gap(const MixingSchedule& schedule);

/// The direction in which a static symmetric W contracts most slowly.
struct SlowMode {
  double eigenvalue = 0;   ///< signed; |eigenvalue| = 1 − gap
  Eigen::VectorXd vector;  ///< one entry a peer; norm 1, mean 0
};

/// The slowest mode. The error (invalid) says where there is none: one peer, a schedule with other than one W, an
/// unsymmetric W. O(n³).
Result<SlowMode> slowest_mode(const MixingSchedule& schedule);

}  // namespace gossamer::topology
