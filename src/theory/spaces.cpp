#include "theory/spaces.hpp"

#include "base/check.hpp"
#include "base/linear_algebra/dense.hpp"
#include "topology/lattice.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::theory {
namespace {

using Piece = Eigen::Map<const RowMatrix>;

/// A peer's row as its probes, one below the other.
Piece probes_of(const RowMatrix& x, Eigen::Index peer, Eigen::Index dimension) {
  return {x.data() + peer * x.cols(), x.cols() / dimension, dimension};
}

}  // namespace

RowMatrix PeerSpace::mixed(const Vector& x, Round t) const {
  return topology::mixed_rows(*schedule_.at(t), x);
}

RowMatrix PeerSpace::curved(const Vector& x) const {
  const Eigen::Index d = dimension();
  RowMatrix result(x.rows(), x.cols());
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    Eigen::Map<RowMatrix> out(result.data() + i * x.cols(), x.cols() / d, d);
    if (curvature_.hessians.empty())
      out = probes_of(x, i, d).array().rowwise() * curvature_.values.transpose();
    else out.noalias() = probes_of(x, i, d) * curvature_.hessians[static_cast<std::size_t>(i)];
  }
  return result;
}

RowMatrix PeerSpace::averaged(const Vector& x) const {
  return x.colwise().mean().replicate(x.rows(), 1);
}

Squares PeerSpace::squares(const Vector& x) const {
  const Eigen::RowVectorXd mean = x.colwise().mean();
  const double beside = (x.rowwise() - mean).squaredNorm();
  return {beside + static_cast<double>(x.rows()) * mean.squaredNorm(), beside};
}

RowMatrix PeerSpace::units() const {
  const Eigen::Index n = peers(), d = dimension();
  const bool apart =
      curvature_.hessians.empty();  // coordinates never meet: one probe shows all of a peer's
  RowMatrix x = zero(apart ? n : n * d);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index c = 0; c < d; ++c) x(i, apart ? i * d + c : (i * d + c) * d + c) = 1;
  return x;
}

std::vector<PeerSpace> PeerSpace::parts() const {
  if (!curvature_.hessians.empty()) return {*this};
  std::vector<PeerSpace> parts;
  for (const double value : curvature_.values)
    parts.push_back({schedule_, {Eigen::ArrayXd::Constant(1, value), {}}});
  return parts;
}

std::optional<std::vector<Eigen::ArrayXcd>> shared_modes(const MixingSchedule& schedule) {
  std::vector<Eigen::ArrayXcd> rounds;
  if (topology::is_lattice(schedule)) {
    for (int t = 0; t < schedule.period(); ++t) {
      const auto waves =
          topology::lattice_eigenvalues(*schedule.at(static_cast<Round>(t)), schedule.lattice());
      GOSSAMER_CHECK(waves.has_value(), "a lattice's matrices have waves");
      rounds.push_back(Eigen::Map<const Eigen::ArrayXcd>(waves->data(),
                                                         static_cast<Eigen::Index>(waves->size())));
    }
    return rounds;
  }
  if (schedule.period() != 1 || schedule.peers() > ModeSpace::kMostModes ||
      !schedule.at(0)->symmetric())
    return std::nullopt;
  const Eigen::VectorXd ascending = symmetric_eigenvalues(topology::dense(*schedule.at(0)));
  rounds.emplace_back(ascending.reverse().array().cast<std::complex<double>>());
  return rounds;
}

std::optional<ModeSpace> ModeSpace::make(const MixingSchedule& schedule,
                                         const Curvature& curvature) {
  constexpr Eigen::Index kMostRows = 1 << 20;
  const Eigen::Index d = curvature.dimension(), n = schedule.peers();
  if (!curvature.hessians.empty() || n * d > kMostRows) return std::nullopt;
  const auto modes = shared_modes(schedule);
  if (!modes) return std::nullopt;
  ModeSpace space;
  space.dimension_ = d;
  space.curvature_ = curvature.values.cast<std::complex<double>>().replicate(n, 1);
  for (const Eigen::ArrayXcd& round : *modes) {
    Eigen::ArrayXcd& weights = space.weights_.emplace_back(n * d);
    for (Eigen::Index k = 0; k < n; ++k) weights.segment(k * d, d).setConstant(round(k));
  }
  return space;
}

Eigen::ArrayXXcd ModeSpace::averaged(const Vector& x) const {
  Vector mean = Vector::Zero(x.rows(), x.cols());
  mean.topRows(dimension_) = x.topRows(dimension_);
  return mean;
}

Squares ModeSpace::squares(const Vector& x) const {
  const double whole = x.abs2().sum();
  return {whole, x.bottomRows(x.rows() - dimension_).abs2().sum()};
}

}  // namespace gossamer::theory
