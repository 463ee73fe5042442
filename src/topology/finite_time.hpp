// Rounds of weighted edges that average exactly, for any number of peers: what the kinds base and
// simple_base share.
//
// Takezawa, Sato, Bao, Niwa, Yamada 2023: "Beyond Exponential Graph: Communication-Efficient
// Topologies for Decentralized Learning via Finite-time Convergence" (arXiv:2305.11420). No
// peer has more than k neighbours in a round.
#pragma once

#include <span>
#include <vector>

#include "topology/building.hpp"

namespace gossamer::topology {

/// The weighted edges of each round. A peer without an edge in a round keeps its row.
using Rounds = std::vector<std::vector<WeightedEdge>>;

/// n as the fewest factors of k + 1 or less, ascending; empty for n = 1 and where n has a prime
/// factor above k + 1. n, k ≥ 1.
std::vector<int> smooth_factors(int n, int k);

/// k-peer hyper-hypercube (Alg. 1): n = n_1 ⋯ n_L with factors of k + 1 or less; peers are the
/// points of a box of these sides, and round l averages every line along side l. After L rounds
/// every peer in `peers` has their average. No rounds for one peer; n without such factors is a
/// bug.
Rounds hyper_hypercube(std::span<const int> peers, int k);

/// Simple Base-(k+1) graph (Alg. 2): any number of peers, at most 2 log_{k+1} n + 2 rounds.
Rounds simple_base_graph(std::span<const int> peers, int k);

/// Base-(k+1) graph (Alg. 3): the simple one on parts of q peers, then hyper-hypercubes of p across
/// them, n = p q and p all of n's factors up to k + 1; or the simple one of all, where that takes
/// fewer rounds.
Rounds base_graph(std::span<const int> peers, int k);

/// Parameter of the kinds.
struct FiniteTimeOptions {
  int k = 1;
};
const ParameterSet<FiniteTimeOptions>& finite_time_parameters();

/// The kind that goes through rounds_of(0..n−1, k) over and over.
TopologyKind finite_time_kind(Rounds (*rounds_of)(std::span<const int> peers, int k));

}  // namespace gossamer::topology
