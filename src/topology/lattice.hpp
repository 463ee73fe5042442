// Spectra by Fourier sums. Where W looks the same from every peer of a lattice n_1 × … × n_k closed
// to rings (a ring, a torus, a hypercube, any circulant graph), its eigenvectors are the lattice's
// waves, whatever its weights and directions.
#pragma once

#include <complex>
#include <optional>
#include <span>
#include <vector>

#include "topology/mixing_matrix.hpp"

namespace gossamer::topology {

/// The n eigenvalues of W by wave: the one of wave k, numbered as the peers are, is Σ_d W[d][0]
/// ω^(k·d), and wave 0's is 1. All W on one lattice share the waves, so a product's eigenvalues are
/// the products. A value within rounding of 0 is 0. None when n_1 ⋯ n_k is not n, or W does
/// not look the same from everywhere. O(n × entries a row).
std::optional<std::vector<std::complex<double>>> lattice_eigenvalues(const MixingMatrix& w,
                                                                     std::span<const int> sides);

/// Every W of the period looks the same from everywhere, on schedule.lattice(); false without a
/// period.
bool is_lattice(const MixingSchedule& schedule);

}  // namespace gossamer::topology
