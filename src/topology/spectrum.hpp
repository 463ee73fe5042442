// How fast a mixing matrix makes peers agree: its eigenvalues beside the single 1.
#pragma once

#include <Eigen/Core>

#include <optional>
#include <span>

#include "topology/krylov.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::topology {

/// W whole, n × n.
Eigen::MatrixXd dense(const MixingMatrix& w);

/// W·x for many columns: a peer a row.
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
RowMatrix mixed_rows(const MixingMatrix& w, const RowMatrix& x);

/// The largest modulus of a square matrix's eigenvalues, within about 1e-12 relative where they are
/// well conditioned. O(n³), about 45 matrix products.
double spectral_radius(Eigen::MatrixXd matrix);

/// How a spectrum is found, quickest first:
///   lattices        Fourier sums (topology/lattice.hpp), static or varying in time
///   up to kDense    peers, static and symmetric: whole; up to kDenseProduct, any other period: the
///   product's, whole larger          Lanczos and inverse Lanczos where static and symmetric,
///   Arnoldi on the product where not
inline constexpr int kDense = 256, kDenseProduct = 384;

/// 1 − ρ(W_τ…W_1)^{1/τ}, where ρ is the largest modulus beside the single eigenvalue 1: per round,
/// the distance to consensus (of push-sum's quotients, where W keeps only its columns) shrinks by
/// the factor 1 − gap in the long run. 1 for one peer, and where rounds become the exact average.
/// Of a random sequence: 1 − √mean_square_factor(). NaN where it is too costly to find: large
/// graphs that are neither lattices nor cheaply factorised, with a gap so narrow that Lanczos or
/// Arnoldi do not settle.
double spectral_gap(const MixingSchedule& schedule);

/// Of a random sequence: the largest factor by which a round multiplies the squared distance to
/// consensus, in expectation, the largest eigenvalue of E WᵀW on vectors of mean 0 (Boyd, Ghosh,
/// Prabhakar and Shah 2006). Where W keeps only its rows, the distance is that to the mean before
/// the round. NaN where it is not known: the law says nothing of these weights, or
/// W keeps only its columns.
double mean_square_factor(const MixingSchedule& schedule);

/// Rounds, from round 0, after which every peer has the exact average, whatever the start
/// (but for rounding); none: never. Looked for in two periods and 64 rounds at least (static
/// symmetric matrices: in one round); a random sequence of more than two peers has none, whatever a
/// seed does. Found by mixing three generic vectors: exact is where what is left falls at once, in
/// a round, to rounding alone. O(rounds × entries).
std::optional<Round> rounds_to_exact(const MixingSchedule& schedule);

/// The ends of a symmetric W's spectrum beside the 1 of the constant vector, both good to about
/// 1e-9 of their distance from ±1. n ≥ 2. lattice: as Topology::lattice(). None where too costly to
/// find.
std::optional<SpectrumEnds> symmetric_ends(const MixingMatrix& w, std::span<const int> lattice);

/// The lowest eigenvalue of W, as symmetric_ends(). None where W varies, is not symmetric or is too
/// large, and for one peer.
std::optional<double> lowest_eigenvalue(const MixingSchedule& schedule);

/// 1 − ‖W − 11ᵀ/n‖: the least that one round with this W alone takes off any distance to consensus;
/// 0 where W leaves a peer disconnected, 1 where it averages exactly. NaN where too costly to find,
/// and where W keeps only its columns or its rows: its rounds may well drive x apart, which
/// push-sum's weights make good.
double round_gap(const MixingMatrix& w, std::span<const int> lattice);

/// The direction in which a static symmetric W contracts most slowly.
struct SlowMode {
  double eigenvalue = 0;   ///< signed; |eigenvalue| = 1 − gap
  Eigen::VectorXd vector;  ///< one entry a peer; norm 1, mean 0
};

/// The slowest mode. The error (invalid) says where there is none: one peer, a schedule with other
/// than one W, an unsymmetric W. O(n³).
Result<SlowMode> slowest_mode(const MixingSchedule& schedule);

}  // namespace gossamer::topology
