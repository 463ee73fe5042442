// How well noise that the two ends of each edge add with opposite signs hides a peer's samples
// (DECOR: Allouah, Koloskova, El Firdoussi, Jaggi and Guerraoui 2024, "The Privacy Power of
// Correlated Noise in Decentralized Learning", ICML).
//
// Peer i adds its own noise N(0, σ² I), and for each neighbour j noise v_ij = −v_ji ~ N(0, τ² I)
// that these two alone know. To an observer that sees what all peers send, and knows the secrets of
// the peers of a set S, the noise of the others has the covariance (in each coordinate)
//   Σ_S = σ² I + τ² L_S,
// where L_S is the Laplacian of the graph without S: what the peers of S share with others is
// known. A sample moves what its peer i sends alone, so that it is hidden as by noise of peer i's
// own with the deviation 1 / √((Σ_S⁻¹)_ii): what else is sent adds nothing to the best estimate of
// it. On a connected graph with τ → ∞ that is σ √(n − |S|), as if the noise of all were added to a
// sum whose parts stay hidden.
#pragma once

#include <vector>

#include "topology/graph.hpp"

namespace gossamer::theory {

struct PairNoise {
  double own = 1;     ///< σ > 0
  double shared = 0;  ///< τ ≥ 0
  int colluding = 0;  ///< |S|: below the number of peers
};

/// The deviation that hides each peer's samples, at least σ, for the worst S of `colluding` other
/// peers. `neighbours`: an undirected graph. Pure; operations as of effective_noise_cost().
std::vector<double> effective_noise(const topology::Graph& neighbours, const PairNoise& noise);

/// Floating-point operations of effective_noise(): n³ for each set of `colluding` of n peers.
double effective_noise_cost(int peers, int colluding);

/// The least σ, to a ten-thousandth, with which effective_noise() is at least `target` > 0 at every
/// peer; `noise.own` is not read. Pure.
double own_noise_for(double target, const topology::Graph& neighbours, PairNoise noise);

}  // namespace gossamer::theory
