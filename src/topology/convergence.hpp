// Predicts consensus under a schedule: the contraction of each round, the rounds to agreement, and
// the messages that these rounds send.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topology/mixing_matrix.hpp"

namespace gossamer::topology {

/// Consensus counts as reached when a millionth of the distance is left.
inline constexpr double kReduction = 1e-6;

/// Predictions for mixing alone, without training.
struct Convergence {
  /// For each round of the period, the least fraction by which it lowers any distance to consensus:
  /// 1 − ‖W_t − 11ᵀ/n‖, 0 where it leaves a peer disconnected. NaN where too costly to find, or
  /// where W keeps only its columns or its rows; empty without a period.
  std::vector<double> round_gaps;
  std::optional<Round> rounds_to_exact;  ///< from round 0 until every peer has the exact average
                                         ///< (spectrum.hpp); none: never
  double decay = 0;                      ///< γ of effective_neighbours
  double effective_neighbours = 0;       ///< n_W(γ), 1..n
  bool effective_neighbours_sampled =
      false;  ///< an estimate to ten percent or so: the network was simulated
  /// Rounds until kReduction of the distance to consensus is left, in the long run's rate: ln
  /// kReduction / ln(1 − gap), and at most rounds_to_exact. None where the gap is not known.
  std::optional<Round> rounds_to_millionth;
  double messages_to_millionth = 0;  ///< rows sent in these rounds, by all peers together
  double bytes_to_millionth = 0;     ///< their payload
};

/// n_W(γ) of Vogels, Hendrikx, Jaggi 2022 ("Beyond spectral gap", Definition A): by how much mixing
/// lowers the variance of what decays as z ← W (√γ z + noise), against a peer alone. For a static
/// symmetric W with eigenvalues λ_i it is
///   1/(1 − γ) / ((1/n) Σ_i λ_i² / (1 − γ λ_i²)):
/// 1 where no peer mixes, n where all average exactly, and of W's whole spectrum, not of its gap.
/// Time-varying W: variance averaged over the period. Exact for lattices and up to kDense peers,
/// else simulated (`sampled` says so). NaN where a W keeps only its columns, and what push-sum
/// takes for the average is not W's, or only its rows, and the mean moves. 0 ≤ γ < 1.
double effective_neighbours(const MixingSchedule& schedule, double decay, bool& sampled);

/// Rows that all peers send in rounds 0..rounds−1; of a random sequence, as many a round as on
/// average in the first hundred.
double messages_in(const MixingSchedule& schedule, Round rounds);

/// `gap`: spectral_gap(schedule). `parameters`: float32 values in a row. `decay`: γ, 0 ≤ γ ≤
/// kMostDecay.
Convergence predict_convergence(const MixingSchedule& schedule, double gap,
                                std::uint64_t parameters, double decay);
inline constexpr double kMostDecay = 0.999;

}  // namespace gossamer::topology
