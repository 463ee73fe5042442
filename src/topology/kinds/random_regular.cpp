// Random regular graph: all peers have the same number of neighbours, drawn once. Nearly the best
// gap that this degree can have, at any n: an expander (Friedman 2008: the second eigenvalue of its
// edges is 2 √(d − 1) + ε, almost always).
#include <fmt/format.h>

#include "base/philox.hpp"
#include "topology/building.hpp"

namespace gossamer::topology::kinds::random_regular {
namespace {

constexpr int kMostDraws = 100, kLeastDegree = 3, kMostDegree = 256;

struct RandomRegularOptions {
  int degree = 4;
};

const ParameterSet<RandomRegularOptions>& parameters() {
  static const auto set = ParameterSet<RandomRegularOptions>().add(
      "degree", &RandomRegularOptions::degree,
      {.help = "neighbours of each peer", .minimum = kLeastDegree, .maximum = kMostDegree});
  return set;
}

}  // namespace

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "random_regular";
  kind.summary =
      "a random connected graph in which each peer has `degree` neighbours: an expander, whose gap "
      "does not shrink with n";
  kind.source = "Steger and Wormald 1999; Friedman 2008 (arXiv:cs/0405020)";
  kind.parameters = parameters().specs();
  kind.make = [](const TopologyContext& context,
                 const ParameterValues& values) -> Result<std::unique_ptr<Topology>> {
    GOSSAMER_TRY(const RandomRegularOptions options, parameters().read("topology", values));
    const int n = context.peers, degree = options.degree;
    if (n == 1) return static_topology(Graph{{{}}});
    if (!regular_exists(n, degree))
      return cannot_build(
          "random_regular", n,
          n <= degree
              ? fmt::format("{} neighbours each are more than there are", degree)
              : fmt::format("with {} neighbours each, one end of an edge is left over", degree),
          [degree](int peers) { return regular_exists(peers, degree); });
    for (int attempt = 0; attempt < kMostDraws; ++attempt) {
      RandomStream random(context.seed, kNoPeer, Purpose::topology,
                          static_cast<std::uint64_t>(attempt));
      Graph graph = draw_regular(n, degree, random);
      if (graph.peers() == n && !find_unreachable(graph)) return static_topology(std::move(graph));
    }
    return invalid_error(
        fmt::format("topology random_regular: none of {} draws for {} peers was connected; choose "
                    "another seed or a larger degree",
                    kMostDraws, n));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::random_regular
