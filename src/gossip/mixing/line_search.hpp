// The strength at which the message of an attack does most harm, as in Shejwalkar and Houmansadr
// 2021 and the experiments of Gaucher, Dieuleveut and Hendrikx 2025: it maximises
//   ‖R_i(s) − Σ_k W[i][k] x_k‖,
// where R_i(s) is what receiver i makes of its neighbours' rows by its mixing rule if all hostile
// neighbours send the message of strength s, and the sum, of which the weight that is missing is
// on x_i, is over i and its honest neighbours: what i would make if it knew them.
#pragma once

#include "gossip/attack.hpp"
#include "gossip/rule.hpp"

namespace gossamer::gossip {

/// Mixes that a search tries, as in the experiments of Gaucher et al.
inline constexpr int kSearchedStrengths = 16;
/// The largest strength that a search can find: each of its steps was longer than the one before.
inline constexpr double kLargestSearched = (1 << (kSearchedStrengths - 1)) - 1;

/// s in [0, kLargestSearched]. From s = 0, steps of 1, 2, 4, … as long as each does more harm, and
/// then shorter and shorter ones to both sides: a hill, and not always the highest. With the mean
/// the harm is convex in s, so that s is an end of the range. `attack` is of a kind that
/// is_searchable(), and has observed the view. `rule`: that of the receiver, which reads no losses;
/// null is the mean. Messages are not clamped here (Adversary). A pure function. Time: m² d for m
/// rows of d values and a rule on distances, 16 m log(m) d for one on ranks.
double most_harmful_strength(const Attack& attack, const AttackView& view, int receiver,
                             const MixingRule* rule);

}  // namespace gossamer::gossip
