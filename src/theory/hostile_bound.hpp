// How much weight hostile neighbours may have on a given W, whichever peers are hostile: the
// guarantees of ClippedGossip (He, Karimireddy and Jaggi 2022, Theorem I) and of CS+ (Gaucher,
// Dieuleveut and Hendrikx 2025).
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
//
// CS+ with δ_i, the weight of the b heaviest neighbours of i, clips rows of weight B_i ≥ 2 δ_i, and
// B_i = 2 δ_i where all neighbours weigh the same; elsewhere B_i exceeds it by less than the
// heaviest one. Honest rows of weight δ_i at least are among them, and what clipping takes from
// these makes up for what hostile rows add. With L the Laplacian of W on R, a round is x ← (I − L)
// x + e, where
//   ‖e_i‖² ≤ B_i Σ_R W[i][j] ‖x_i − x_j‖²,   so that   ‖e‖² ≤ 2 B xᵀ L x,   B the largest B_i.
// The distance to consensus shrinks if ‖(I − L) x‖ + √(2 B xᵀ L x) < ‖x‖ for every x that is
// perpendicular to the constant vector. The eigenvalues of L on these x are between μ₂ − δ and M,
// if μ₂ and M are the second smallest and the largest of W's own Laplacian; the left side is
// largest for a mixture of both ends. Where M ≤ 1 and weights are equal, it comes to 4 δ < μ₂ − δ.
#pragma once

#include <optional>
#include <string>

#include "topology/mixing_matrix.hpp"

namespace gossamer::theory {

struct HostileBound {
  double weight = 0;   ///< δ below this: the distance to consensus shrinks. In [0, 1)
  int neighbours = 0;  ///< the most neighbours of any peer that weigh less than that together
};

struct HostileBounds {
  HostileBound clipped, cs_plus;
};

/// Why no bounds are known of such a W, "W varies" for example; empty: there are bounds, unless the
/// ends of W's spectrum are too costly to find.
std::string no_hostile_bounds(const topology::MixingSchedule& schedule);

/// The bounds where W is the same in every round, symmetric and not negative; none elsewhere, and
/// where the ends of W's spectrum are too costly to find. The conditions suffice, and are not
/// necessary.
std::optional<HostileBounds> hostile_bounds(const topology::MixingSchedule& schedule);

}  // namespace gossamer::theory
