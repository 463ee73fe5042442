// Mixing weights from a graph.
#pragma once

#include <span>

#include "topology/graph.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::topology {

/// The weights of one round's graph. d(i) is the in-degree of peer i, h(j) the out-degree of peer
/// j:
///   metropolis      undirected           W[i][j] = 1 / (1 + max(d(i), d(j)))
///                   Metropolis–Hastings: Xiao, Boyd, Lall 2005
///   metropolis      directed, regular    W[i][j] = 1 / (1 + d), d every in- and out-degree
///   uniform         balanced             W[i][j] = 1 / (1 + max_k d(k)), d(i) = h(i) for every i
///   best_constant   undirected           W[i][j] = 2 / (λ1 + λn−1), the largest and the smallest
///                   positive eigenvalue of the Laplacian: Xiao and Boyd 2004, eq. 21
///   out_degree      any graph            W[i][j] = 1 / (1 + h(j)); columns sum to 1, rows need not
///                   Kempe, Dobra, Gehrke 2003
///   in_degree       any graph            W[i][j] = 1 / (1 + d(i)); rows sum to 1, columns need not
/// and W[i][i] is what is missing to 1 (of column i for out_degree, else of row i); lazy halves
/// the off-diagonal entries. "auto" is metropolis here. An undirected graph is balanced. The error
/// (invalid) of any other graph says which peer is uneven: no rule here would make its columns sum
/// to 1. So does best_constant where the graph is not connected, or where a peer would get a
/// negative weight on itself and `allow_negative` is false. `lattice`: as Topology::lattice(),
/// which best_constant's eigenvalues are found faster with.
Result<WeightRows> weigh(const Graph& graph, const WeightOptions& options,
                         std::span<const int> lattice = {});

/// W of round t of a topology, whose graph of that round is `graph`: its own weights where
/// `options` says "given", or "auto" and it has some; else by the rule. The error is that of
/// weigh(), or says that "given" finds none.
Result<WeightRows> weigh_round(const Topology& topology, const Graph& graph, Round t,
                               const WeightOptions& options);

/// `options` with "auto" made what it means for this topology: "given" where it has weights, else
/// `options.automatic`, or the topology's `automatic()` where that is "metropolis".
WeightOptions resolve(const Topology& topology, const WeightOptions& options);

/// Row i with these off-diagonal weights (ascending by peer), and on the diagonal what is missing
/// to 1.
std::vector<Neighbour> complete_row(int i, std::vector<Neighbour> others);

}  // namespace gossamer::topology
