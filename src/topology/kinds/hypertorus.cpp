// Torus of any dimension: rings times rings times rings. More dimensions, more neighbours, and a
// gap of n^(−2/dimension).
#include <fmt/format.h>

#include <algorithm>

#include "topology/building.hpp"

namespace gossamer::topology::kinds::hypertorus {
namespace {

constexpr int kShortest = 3;  // with a side of 2, the wrap-around edge falls on the grid's own

struct HypertorusOptions {
  int dimensions = 0;
  std::vector<int> sides;
};

const ParameterSet<HypertorusOptions>& parameters() {
  static const auto set =
      ParameterSet<HypertorusOptions>()
          .add("dimensions", &HypertorusOptions::dimensions,
               {.help = "number of dimensions, with sides as equal as n allows; 0: 3, or 2 if n is "
                        "no product of 3 sides of 3 or more",
                .minimum = 0,
                .maximum = 10})
          .add("sides", &HypertorusOptions::sides,
               {.help = "peers along each dimension; empty: chosen for n", .minimum = kShortest});
  return set;
}

/// n as `count` factors of kShortest or more, ascending, `from` or more each; the longest as short
/// as can be. Empty: none.
std::vector<int> most_equal_sides(int n, int count, int from) {
  if (count == 1) return n >= from ? std::vector<int>{n} : std::vector<int>{};
  std::vector<int> best;
  for (int side = from; side <= n / side; ++side) {
    if (n % side != 0) continue;
    std::vector<int> rest = most_equal_sides(n / side, count - 1, side);
    if (rest.empty() || (!best.empty() && rest.back() >= best.back())) continue;
    best = std::move(rest);
    best.insert(best.begin(), side);
  }
  return best;
}

std::vector<int> most_equal_sides(int n, int dimensions) {
  if (dimensions > 0) return most_equal_sides(n, dimensions, kShortest);
  const std::vector<int> three = most_equal_sides(n, 3, kShortest);
  return three.empty() ? most_equal_sides(n, 2, kShortest) : three;
}

Result<std::vector<int>> choose_sides(int n, const HypertorusOptions& options) {
  if (options.sides.empty()) {
    std::vector<int> sides = most_equal_sides(n, options.dimensions);
    if (!sides.empty()) return sides;
    const std::string count =
        options.dimensions > 0 ? fmt::to_string(options.dimensions) : "3 or 2";
    return cannot_build(
        "hypertorus", n,
        fmt::format("it is no product of {} sides of {} or more", count, kShortest),
        [&](int peers) { return !most_equal_sides(peers, options.dimensions).empty(); });
  }
  std::int64_t product = 1;
  for (const int side : options.sides)
    product = std::min<std::int64_t>(product * side, kMaximumPeers + 1);
  if (product == n) return options.sides;
  return cannot_build(
      "hypertorus", n,
      fmt::format("its sides {} multiply to another number", fmt::join(options.sides, " × ")),
      [product](int peers) { return peers == product; });
}

}  // namespace

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "hypertorus";
  kind.summary =
      "torus of any dimension: 2 · dimensions neighbours everywhere; the gap shrinks as "
      "n^(−2/dimensions)";
  kind.parameters = parameters().specs();
  kind.make = [](const TopologyContext& context,
                 const ParameterValues& values) -> Result<std::unique_ptr<Topology>> {
    GOSSAMER_TRY(const HypertorusOptions options, parameters().read("topology", values));
    std::vector<Edge> edges;
    if (context.peers == 1) return static_topology(undirected_graph(1, edges), {1});
    GOSSAMER_TRY(const std::vector<int> sides, choose_sides(context.peers, options));
    int stride = 1;  // of the last side first: peers are numbered along it
    for (std::size_t s = sides.size(); s-- > 0; stride *= sides[s])
      for (int i = 0; i < context.peers; ++i) {
        const bool at_end = i / stride % sides[s] == sides[s] - 1;
        edges.push_back({i, at_end ? i - stride * (sides[s] - 1) : i + stride});
      }
    return static_topology(undirected_graph(context.peers, edges), sides);
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::hypertorus
