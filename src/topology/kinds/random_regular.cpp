// Random regular graph: all peers have the same number of neighbours, drawn once. Nearly the best
// gap that this degree can have, at any n: an expander (Friedman 2008: the second eigenvalue of its
// edges is 2 √(d − 1) + ε, almost always).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

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

bool exists(int n, int degree) { return n > degree && n % 2 * (degree % 2) == 0; }

bool adjacent(const Graph& graph, std::uint32_t a, std::uint32_t b) {
  const auto& out = graph.out[a].size() < graph.out[b].size() ? graph.out[a] : graph.out[b];
  const auto other = static_cast<int>(graph.out[a].size() < graph.out[b].size() ? b : a);
  return std::find(out.begin(), out.end(), other) != out.end();
}

/// Whether any two of these points could still be joined.
bool any_suitable(const Graph& graph, std::vector<std::uint32_t> points) {
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t j = i + 1; j < points.size(); ++j)
      if (!adjacent(graph, points[i], points[j])) return true;
  return false;
}

// Steger and Wormald 1999: every peer is `degree` points, points are paired at random, pairs that
// would be a loop or a double edge are undone and drawn again among themselves. Empty where only
// such are left.
Graph pair_points(int n, int degree, RandomStream& random) {
  Graph graph{std::vector<std::vector<int>>(static_cast<std::size_t>(n))};
  std::vector<std::uint32_t> points;
  for (int i = 0; i < n; ++i)
    points.insert(points.end(), static_cast<std::size_t>(degree), static_cast<std::uint32_t>(i));
  while (!points.empty()) {
    random.shuffle(points);
    std::vector<std::uint32_t> left;
    for (std::size_t i = 0; i + 1 < points.size(); i += 2) {
      const std::uint32_t a = points[i], b = points[i + 1];
      if (a == b || adjacent(graph, a, b)) {
        left.insert(left.end(), {a, b});
        continue;
      }
      graph.out[a].push_back(static_cast<int>(b));
      graph.out[b].push_back(static_cast<int>(a));
    }
    if (left.size() == points.size() && !any_suitable(graph, left)) return {};
    points = std::move(left);
  }
  for (auto& out : graph.out) std::sort(out.begin(), out.end());
  return graph;
}

Graph complement(const Graph& graph) {
  Graph result{std::vector<std::vector<int>>(graph.out.size())};
  for (std::size_t i = 0; i < graph.out.size(); ++i)
    for (int j = 0; j < graph.peers(); ++j)
      if (j != static_cast<int>(i) &&
          !std::binary_search(graph.out[i].begin(), graph.out[i].end(), j))
        result.out[i].push_back(j);
  return result;
}

/// A graph that is dense is drawn by the edges that it lacks.
Graph draw(int n, int degree, RandomStream random) {
  if (2 * degree < n) return pair_points(n, degree, random);
  const Graph lacking = pair_points(n, n - 1 - degree, random);
  return lacking.peers() == 0 ? lacking : complement(lacking);
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
    if (!exists(n, degree))
      return cannot_build(
          "random_regular", n,
          n <= degree
              ? fmt::format("{} neighbours each are more than there are", degree)
              : fmt::format("with {} neighbours each, one end of an edge is left over", degree),
          [degree](int peers) { return exists(peers, degree); });
    for (int attempt = 0; attempt < kMostDraws; ++attempt) {
      Graph graph = draw(n, degree,
                         RandomStream(context.seed, kNoPeer, Purpose::topology,
                                      static_cast<std::uint64_t>(attempt)));
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
