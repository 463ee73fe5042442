// The checks that make a mixing matrix an artifact one can rely on. A run whose W fails one does
// not start.
#pragma once

#include <span>

#include "topology/graph.hpp"
#include "topology/weights.hpp"

namespace gossamer::topology {

/// How far from 1 a row or a column may sum, in double.
inline constexpr double kSumTolerance = 1e-12;

/// Checks one round's W against the graph of that round, in this order; pure. The error (invalid)
/// names the first check that fails, as here on the left, and where:
///   shape         as many rows as peers; each row ascending, each peer 0..n−1 at most once
///   support       an off-diagonal entry that is not 0 is an edge of the graph
///   entries       finite and ≥ 0, the diagonal too unless it may be negative
///   row sum       1 within kSumTolerance: equal rows stay equal
///   column sum    1 within kSumTolerance: nothing is lost or gained, so the mean stays
/// Of `options` it heeds stochastic() (the sums that are checked) and allow_negative.
Status check_round(const WeightRows& w, const Graph& graph, Round round,
                   const WeightOptions& options = {});

/// Checks "joint connectivity": over the given rounds together, along entries that are not 0,
/// every peer reaches every other. All rounds are of equal peers and have the shape that
/// check_round wants. At least one round.
Status check_jointly_connected(std::span<const WeightRows> rounds);

}  // namespace gossamer::topology
