// Metrics of a network's rows: consensus distance, exact and estimated from sketches, distance to
// the optimum, and the hash that identifies the final parameters.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "peer/setup/row_views.hpp"

namespace gossamer::peer {

/// How far rows are from their mean.
struct ConsensusDistance {
  double all = 0;               ///< sqrt( (1/n) Σ_i ‖x_i − x̄‖² )
  std::vector<double> by_peer;  ///< ‖x_i − x̄‖, in the order of the rows
};

/// Computed in double. `average`, as long as a row: becomes x̄, each value rounded once, so that of
/// one row it has the row's bits.
ConsensusDistance consensus_distance(const RowViews& rows, std::span<float> average);

/// sqrt( (1/n) Σ_i ‖x_i − x*‖² ) / ‖x*‖. Infinite if x* = 0 and the rows are not.
double distance_to_optimum(const RowViews& rows, std::span<const double> optimum);

/// An estimate of the consensus distance: the consensus distance of the peers' sketches
/// (gpu/device.hpp), which all have the same length.
ConsensusDistance estimated_consensus_distance(const std::vector<std::vector<double>>& sketches);

/// A sketch as the log has it: base64 of its values as little-endian float32. Empty if one of them
/// is not finite then.
std::string encode_sketch(std::span<const double> sketch);
/// The values of an encoded sketch; empty if the text is none.
std::vector<double> decode_sketch(const std::string& text);

/// The hash of the peers' row hashes, in peer order. Two runs have the same final hash if and only
/// if all parameters are bit-identical (up to hash collisions).
std::string final_hash(const std::vector<std::string>& row_hashes);

}  // namespace gossamer::peer
