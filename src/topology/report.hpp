// The properties of a topology that `gossamer topology` prints and the header of a run's log has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/mixing_matrix.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::topology {

struct TopologyReport {
  std::string topology;  ///< kind
  int peers = 0;
  std::string weights;  ///< as weighed, never "auto": "metropolis", "given", …, with "lazy " before
                        ///< it where lazy
  /// Undirected edges where `symmetric` (else directed ones), in the union over the period.
  std::int64_t edges = 0;
  int degree_min = 0, degree_max = 0;  ///< in-neighbours in one round
  std::optional<int> diameter;         ///< hops, on the union over the period; none when it is not
                                       ///< connected, or was left out
  bool diameter_exact = true;  ///< false: the diameter is at least that (topology/graph.hpp)
  int period = 1;  ///< rounds; 0 for a random sequence, of which the first sampled_rounds(n) rounds
                   ///< are described
  bool symmetric = false;  ///< every W_t equals its transpose
  bool doubly_stochastic = false;
  bool connected = false;  ///< strongly, jointly over the period
  /// 1 − ρ(W_τ…W_1)^{1/τ}, ρ beside the single 1; 1 where one period is the exact average; NaN
  /// where it was left out or is too costly (spectrum.hpp).
  double spectral_gap = 0;
  bool spectral_gap_expected =
      false;  ///< no period: the gap is that of the expected squared distance (spectrum.hpp)
  /// Payload of the busiest peer's sends in a round, averaged over the period: one row to each
  /// out-neighbour, or what a run's algorithm sends.
  std::uint64_t bytes_per_round_per_peer = 0;
};

/// Most float32 values in a row for which bytes are still counted exactly.
inline constexpr std::uint64_t kMaximumParameters = std::uint64_t{1} << 40;

/// How much an examination may cost: whole, or what does not keep a run waiting at its start.
/// `quick` leaves out the gap of more than kQuickGapStatic peers (kQuickGapVarying where W varies
/// in time) that are no lattice, and the diameter of more than kQuickDiameter.
enum class Effort { whole, quick };
inline constexpr int kQuickGapStatic = 1024, kQuickGapVarying = 512, kQuickDiameter = 4096;

/// Examines what `request` asks for, for rows of `parameters` float32 values. The error (invalid)
/// is make_schedule's, or says that parameters exceed kMaximumParameters.
Result<TopologyReport> examine(const ScheduleRequest& request, std::uint64_t parameters);

/// Examines a schedule that make_schedule(request) returned. With Effort::quick any number of peers
/// will do. `most_sent`: for algorithms that send other data than one row to each out-neighbour.
Result<TopologyReport> examine(const MixingSchedule& schedule, const ScheduleRequest& request,
                               std::uint64_t parameters, Effort effort = Effort::whole,
                               const MostSent& most_sent = {});

/// [t][i][j] = W_t[i][j] of every round of the period, of a random sequence of its first
/// `drawn_rounds`: what --matrix prints. n² doubles a round.
std::vector<std::vector<std::vector<double>>> period_matrices(const MixingSchedule& schedule,
                                                              int drawn_rounds = 1);

}  // namespace gossamer::topology
