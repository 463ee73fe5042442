// How much weight hostile neighbours may have: the guarantee of ClippedGossip (He, Karimireddy and
// Jaggi 2022, Theorem I) on a given W, whichever peers are hostile.
//
// R are the honest peers, δ_i is the weight of the hostile neighbours of i, δ the largest δ_i, and
// W̃ is W on R with δ_i added to entry (i, i). With the radius τ_i² = (1/δ_i) Σ_R W[i][j] ‖x_i −
// x_j‖² of the paper, a round is x ← W̃ x + e. In e_i, clipping moves the honest neighbours by
// Σ_R W[i][j] max(0, ‖x_j − x_i‖ − τ_i) ≤ δ_i τ_i / 4, as z − τ ≤ z² / 4τ, and the hostile ones
// move x_i by δ_i τ_i. Hence
//   ‖e‖² ≤ (5/4)² δ Σ_R W[i][j] ‖x_i − x_j‖² ≤ (5/4)² δ · 2 (1 − λ_min) ‖x − x̄‖²,
// where λ_min is the smallest eigenvalue of W. By interlacing, the gap of W̃ is γ − δ or more, and
// γ is the gap of W. The distance to consensus shrinks in each round by the factor
//   1 − γ + δ + c √δ,   c = (5/4) √(2 (1 − λ_min)),
// or a smaller one. The paper's theorem has this form, 1 − γ̃ + c √δ, with the gap γ̃ of W̃.
#pragma once

#include <optional>

#include "topology/mixing_matrix.hpp"

namespace gossamer::theory {

struct HostileBound {
  double weight = 0;   ///< δ below this: the distance to consensus shrinks. In [0, 1)
  int neighbours = 0;  ///< the most neighbours of any peer that weigh less than that together
};

/// The bound where W is the same in every round and symmetric; none elsewhere, and where the ends
/// of W's spectrum are too costly to find. The condition suffices, and is not necessary.
std::optional<HostileBound> hostile_bound(const topology::MixingSchedule& schedule);

}  // namespace gossamer::theory
