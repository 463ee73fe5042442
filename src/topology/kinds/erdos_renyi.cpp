// Erdős–Rényi: every pair is an edge with probability p, drawn once; drawn again where the outcome
// is not connected.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/philox.hpp"
#include "topology/building.hpp"

namespace gossamer::topology::kinds::erdos_renyi {
namespace {

constexpr int kMostDraws = 100;
constexpr double kMostEdges = 4e7;

struct ErdosRenyiOptions {
  double p = 0;
};

const ParameterSet<ErdosRenyiOptions>& parameters() {
  static const auto set = ParameterSet<ErdosRenyiOptions>().add(
      "p", &ErdosRenyiOptions::p,
      {.help = "probability of each edge; 0: 2 ln(n)/n, twice what connects a large network",
       .minimum = 0,
       .maximum = 1});
  return set;
}

double probability(int n, const ErdosRenyiOptions& options) {
  return options.p > 0 ? options.p : std::min(1.0, 2 * std::log(n) / n);
}

// Pairs (i, j), j < i, in a row; the number of pairs that are passed over is geometric (Batagelj
// and Brandes 2005, Alg. 1): time goes with the edges, not with the pairs.
Graph draw(int n, double p, RandomStream random) {
  std::vector<Edge> edges;
  std::int64_t i = 1, j = -1;
  while (i < n) {
    const double skipped =
        p < 1 ? std::floor(std::log(1 - random.next_double()) / std::log(1 - p)) : 0;
    if (skipped > 1e10) break;  // past every pair there is
    j += 1 + static_cast<std::int64_t>(skipped);
    for (; j >= i && i < n; ++i) j -= i;
    if (i < n) edges.push_back({static_cast<int>(j), static_cast<int>(i)});
  }
  return undirected_graph(n, edges);
}

}  // namespace

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "erdos_renyi";
  kind.summary =
      "every pair is an edge with probability p; drawn from the seed until the graph is connected";
  kind.source = "Erdős and Rényi 1959; Gilbert 1959";
  kind.parameters = parameters().specs();
  kind.make = [](const TopologyContext& context,
                 const ParameterValues& values) -> Result<std::unique_ptr<Topology>> {
    GOSSAMER_TRY(const ErdosRenyiOptions options, parameters().read("topology", values));
    const int n = context.peers;
    const double p = probability(n, options);
    const auto fits = [&](int peers) {
      return probability(peers, options) * peers * (peers - 1.0) / 2 <= kMostEdges;
    };
    if (!fits(n))
      return cannot_build("erdos_renyi", n,
                          fmt::format("its edges are held in memory, up to {:g}", kMostEdges),
                          fits);
    for (int attempt = 0; attempt < kMostDraws; ++attempt) {
      Graph graph = draw(n, p,
                         RandomStream(context.seed, kNoPeer, Purpose::topology,
                                      static_cast<std::uint64_t>(attempt)));
      if (!find_unreachable(graph)) return static_topology(std::move(graph));
    }
    return invalid_error(
        fmt::format("topology erdos_renyi cannot be built for {} peers with p = {:g}: {} "
                    "draws were not connected; "
                    "p = {:.2g} would be",
                    n, p, kMostDraws, std::min(1.0, 2 * std::log(n) / n)));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::erdos_renyi
