// Where a linear iteration lives: what its vectors are, how W mixes them and how the peers'
// Hessians act on them. An iteration (theory/iteration.hpp) is written once and runs on the peers'
// rows themselves, or on the modes that W and the Hessians leave to themselves.
#pragma once

#include <Eigen/Core>

#include <memory>
#include <optional>
#include <vector>

#include "topology/mixing_matrix.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::theory {

using topology::MixingSchedule;
using topology::Round;
using topology::RowMatrix;

/// How the peers' functions curve, coordinates of x counted from the optimum. Where all Hessians
/// are equal the coordinates are their eigenvectors, and `values` the eigenvalues; else `hessians`
/// has one d × d matrix a peer.
struct Curvature {
  Eigen::ArrayXd values;
  std::vector<Eigen::MatrixXd> hessians;

  Eigen::Index dimension() const {
    return hessians.empty() ? values.size() : hessians.front().rows();
  }
};

/// Σ over peers (and probes) of the square of a vector, and of its part beside the mean over the
/// peers.
struct Squares {
  double whole = 0, beside_mean = 0;
};

/// The peers' rows: vectors are n × (probes · d), probe p in columns p d … p d + d − 1.
class PeerSpace {
 public:
  using Vector = RowMatrix;

  /// The schedule outlives the space.
  PeerSpace(const MixingSchedule& schedule, Curvature curvature)
      : schedule_(schedule), curvature_(std::move(curvature)) {}

  Eigen::Index peers() const { return schedule_.peers(); }
  Eigen::Index dimension() const { return curvature_.dimension(); }
  Vector zero(Eigen::Index probes = 1) const { return Vector::Zero(peers(), probes * dimension()); }
  /// W_t x.
  Vector mixed(const Vector& x, Round t) const;
  /// Row i times A_i.
  Vector curved(const Vector& x) const;
  /// Every row the mean of all.
  Vector averaged(const Vector& x) const;
  Squares squares(const Vector& x) const;
  /// Push-sum's weights, one a peer.
  using Weights = Eigen::ArrayXd;
  Weights equal_weights() const { return Weights::Ones(peers()); }
  Weights mixed_weights(const Weights& weights, Round t) const {
    return mixed(weights.matrix(), t).array();
  }
  Vector weighed(const Vector& x, const Weights& weights) const {
    return weights.matrix().asDiagonal() * x;
  }
  Vector divided(const Vector& x, const Weights& weights) const {
    return weights.inverse().matrix().asDiagonal() * x;
  }
  /// Unit vectors of each coordinate of each peer, in as few probes as keep them separate.
  Vector units() const;
  /// The parts that no iteration joins: one a coordinate where Hessians are equal, else the space
  /// itself.
  std::vector<PeerSpace> parts() const;

 private:
  const MixingSchedule& schedule_;
  Curvature curvature_;
};

/// The modes of W, where all W_t of a schedule share an orthonormal basis of eigenvectors, times
/// the eigenvectors of the one Hessian: vectors are (n d) × probes, mode k and coordinate c in row
/// k d + c. Mode 0 is the mean.
class ModeSpace {
 public:
  using Vector = Eigen::ArrayXXcd;

  /// None where no such basis is known or it takes too long to find: lattices have waves, a static
  /// symmetric W of up to kMostModes peers its eigenvectors.
  static std::optional<ModeSpace> make(const MixingSchedule& schedule, const Curvature& curvature);
  static constexpr int kMostModes = 1024;

  Eigen::Index size() const { return curvature_.size(); }
  Vector zero(Eigen::Index probes = 1) const { return Vector::Zero(size(), probes); }
  Vector mixed(const Vector& x, Round t) const {
    return x.colwise() * weights_[t % weights_.size()];
  }
  Vector curved(const Vector& x) const { return x.colwise() * curvature_; }
  Vector averaged(const Vector& x) const;
  Squares squares(const Vector& x) const;
  /// Such W_t keep their rows' sums too (lattices, symmetric ones), so push-sum's weights stay 1.
  struct Weights {};
  Weights equal_weights() const { return {}; }
  Weights mixed_weights(Weights weights, Round) const { return weights; }
  const Vector& weighed(const Vector& x, Weights) const { return x; }
  const Vector& divided(const Vector& x, Weights) const { return x; }
  /// As PeerSpace::units, in sum: an orthonormal change of basis keeps what independent noise of
  /// equal size does.
  Vector units() const { return Vector::Ones(size(), 1); }

 private:
  Eigen::Index dimension_ = 0;
  std::vector<Eigen::ArrayXcd>
      weights_;                ///< by round of the period: W's eigenvalue of each row's mode
  Eigen::ArrayXcd curvature_;  ///< the Hessian's eigenvalue of each row's coordinate
};

/// W's eigenvalues by mode for each round of the period, mode 0 the mean: as ModeSpace needs them,
/// and Xiao and Boyd's decay.
std::optional<std::vector<Eigen::ArrayXcd>> shared_modes(const MixingSchedule& schedule);

}  // namespace gossamer::theory
