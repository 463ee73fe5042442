// Figures of a network's rows: how far apart the peers are, how far from the optimum, and the sketch from which the first is
// estimated where no process sees all rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gossamer::peer {

using RowViews = std::vector<std::span<const float>>;  ///< one row per peer, in peer order, of equal length

/// x̄, in double.
std::vector<double> mean_row(const RowViews& rows);

/// sqrt( (1/n) Σ_i ‖x_i − x̄‖² ), in double.
double consensus_distance(const RowViews& rows, std::span<const double> mean);

/// sqrt( (1/n) Σ_i ‖x_i − x*‖² ) / ‖x*‖. Infinite where x* = 0 and the rows are not.
double distance_to_optimum(const RowViews& rows, std::span<const double> optimum);

/// Most values of a sketch.
inline constexpr std::size_t kSketchLength = 1024;

/// Random projection of a row to m values, m = kSketchLength or, for shorter rows, d rounded up to a power of two:
/// s = Σ_b E_b H D_b x_b over the row's blocks x_b of m values, H the orthonormal Hadamard matrix, D_b and E_b diagonals of
/// random signs (after Ailon and Chazelle 2009). Linear, and the signs depend on `seed` alone, so sketches of one run add
/// and subtract as their rows do. E‖s‖² = ‖x‖²; the norm has a relative standard deviation of at most 1/sqrt(2m), 2.2 %,
/// whatever the values (a count-sketch, which moves each to one place, is far off where two large ones meet); and one block
/// is exact. In double.
std::vector<double> sketch(std::span<const float> row, std::uint64_t seed);

/// The consensus distance estimated from the peers' sketches, all of one length: that of the sketches themselves.
double estimated_consensus_distance(const std::vector<std::vector<double>>& sketches);

/// The hash of the peers' row hashes, in peer order: equal if and only if all parameters are, bit by bit.
std::string final_hash(const std::vector<std::string>& row_hashes);

}  // namespace gossamer::peer
