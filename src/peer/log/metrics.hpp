// Figures of a network's rows: how far apart the peers are, how far from the optimum, and the
// sketch from which the first is estimated where no process sees all rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gossamer::peer {

using RowViews =
    std::vector<std::span<const float>>;  ///< one row per peer, in peer order, of equal length

/// x̄, in double.
std::vector<double> mean_row(const RowViews& rows);

/// sqrt( (1/n) Σ_i ‖x_i − x̄‖² ), in double.
double consensus_distance(const RowViews& rows, std::span<const double> mean);

/// sqrt( (1/n) Σ_i ‖x_i − x*‖² ) / ‖x*‖. Infinite where x* = 0 and the rows are not.
double distance_to_optimum(const RowViews& rows, std::span<const double> optimum);

/// The consensus distance estimated from the peers' sketches (gpu/device.hpp), all of one length:
/// that of the sketches themselves.
double estimated_consensus_distance(const std::vector<std::vector<double>>& sketches);

/// The hash of the peers' row hashes, in peer order: equal if and only if all parameters are, bit
/// by bit.
std::string final_hash(const std::vector<std::string>& row_hashes);

}  // namespace gossamer::peer
