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

/// Buckets of a sketch. The estimate of ‖v‖ has a relative standard deviation of 1/sqrt(2 · buckets): 2.2 %.
inline constexpr std::size_t kSketchBuckets = 1024;

/// Count-sketch of a row (Charikar, Chen, Farach-Colton 2002): each value is added with a random sign to a random bucket; both
/// depend on `seed` and the value's index alone, so sketches of one run add and subtract as their rows do. In double.
std::vector<double> sketch(std::span<const float> row, std::uint64_t seed);

/// The consensus distance estimated from the peers' sketches: E‖sketch(v)‖² = ‖v‖².
double estimated_consensus_distance(const std::vector<std::vector<double>>& sketches);

/// The hash of the peers' row hashes, in peer order: equal if and only if all parameters are, bit by bit.
std::string final_hash(const std::vector<std::string>& row_hashes);

}  // namespace gossamer::peer
