// From a graph to numbers: how much of what it hears a peer takes.
#pragma once

#include "topology/graph.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::topology {

/// One round's W before it is checked: row i lists every entry of W[i], ascending by peer, the diagonal included.
using WeightRows = std::vector<std::vector<Neighbour>>;

/// The weights of one round's graph. With d(i) how many peers i hears:
///   metropolis, undirected        W[i][j] = 1 / (1 + max(d(i), d(j)))    Metropolis–Hastings: Xiao, Boyd, Lall 2005
///   metropolis, directed regular  W[i][j] = 1 / (1 + d)                  every peer hears d and is heard by d
///   uniform, balanced             W[i][j] = 1 / (1 + max_k d(k))         every peer hears as many as hear it
/// and W[i][i] is what is missing to 1; lazy halves what comes from others. An undirected graph is balanced. The error
/// (invalid) of any other graph says which peer is uneven: no rule here would make its columns sum to 1.
Result<WeightRows> weigh(const Graph& graph, const WeightOptions& options);

}  // namespace gossamer::topology
