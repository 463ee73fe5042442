// The decay of the consensus distance under mixing alone, in expectation over the start.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "theory/spaces.hpp"

namespace gossamer::theory {

struct ConsensusDecay {
  std::vector<double>
      distance;  ///< root of the expected square of the consensus distance, by round asked for
  bool sampled =
      false;  ///< from a simulation of kSamples coordinates: an estimate to a few percent
};

/// Rows of `length` independent standard normal values, mixed: after t rounds, P = W_t … W_1,
///   E (1/n) Σ ‖x_i − x̄‖² = (length/n) (‖P‖_F² − 1)       (Xiao and Boyd 2004)
/// exactly, by eigenvalues where all W_t share an orthonormal basis of eigenvectors
/// (theory/spaces.hpp), else by the product of up to kMostProduct peers, else sampled. rounds:
/// ascending. None where it would take more than about kMostMixing multiplications.
std::optional<ConsensusDecay> consensus_decay(const MixingSchedule& schedule, std::uint64_t length,
                                              const std::vector<Round>& rounds);
inline constexpr int kMostProduct = 512, kSamples = 64;
inline constexpr double kMostMixing = 2e10;

}  // namespace gossamer::theory
