// A topology examined: what `gossamer topology` prints and a run's log header carries.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "topology/mixing_matrix.hpp"

namespace gossamer::topology {

struct TopologyReport {
  std::string topology;  ///< kind
  int peers = 0;
  std::string weights;  ///< "metropolis", "uniform", with "lazy " before it where lazy
  /// Undirected edges of a symmetric graph (else directed ones), the union over the period.
  std::int64_t edges = 0;
  int degree_min = 0, degree_max = 0;  ///< in-neighbours in one round
  std::optional<int> diameter;         ///< hops, on the union over the period; none when it is not connected
  int period = 1;
  bool symmetric = false;  ///< every W_t equals its transpose
  bool doubly_stochastic = false;
  bool connected = false;  ///< strongly, jointly over the period
  double spectral_gap = 0; ///< 1 − ρ(W_τ…W_1)^{1/τ}, ρ beside the single 1
  std::uint64_t bytes_per_round_per_peer = 0;  ///< payload of the busiest peer's sends in a round, averaged over the period
};

/// Examines a schedule for rows of `parameters` float32 values. O(n³) for the spectrum.
Result<TopologyReport> examine(const ScheduleRequest& request, std::uint64_t parameters);

/// 1 − ρ over the period, as in TopologyReport.
double spectral_gap(const MixingSchedule& schedule);

}  // namespace gossamer::topology
