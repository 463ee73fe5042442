// Reports of known graphs, figure by figure, and the graph questions beneath them.
#include <doctest/doctest.h>

#include "base/philox.hpp"
#include "tests/topology/test_util.hpp"
#include "topology/graph.hpp"

using namespace gossamer;
using namespace gossamer::topology;
using namespace gossamer::topology::test;

TEST_CASE("a 4 × 4 torus, examined") {
  const TopologyReport report = network("torus", 16).report(1000);
  CHECK(report.topology == "torus");
  CHECK(report.peers == 16);
  CHECK(report.weights == "metropolis");
  CHECK(report.edges == 32);
  CHECK(report.degree_min == 4);
  CHECK(report.degree_max == 4);
  CHECK(report.diameter == 4);
  CHECK(report.period == 1);
  CHECK(report.symmetric);
  CHECK(report.doubly_stochastic);
  CHECK(report.connected);
  CHECK_FALSE(report.spectral_gap_expected);
  CHECK(report.spectral_gap == doctest::Approx(0.4));
  CHECK(report.bytes_per_round_per_peer == 4 * 4000);
}

TEST_CASE("a star's busiest peer is its centre") {
  const TopologyReport report = network("star", 10).uniform().lazy().report(7);
  CHECK(report.weights == "lazy uniform");
  CHECK(report.edges == 9);
  CHECK(report.degree_min == 1);
  CHECK(report.degree_max == 9);
  CHECK(report.diameter == 2);
  CHECK(report.bytes_per_round_per_peer == 9 * 28);
}

TEST_CASE(
    "a one-peer exponential graph: directed edges, the union over the period, one row sent a "
    "round") {
  const TopologyReport report = network("one_peer_exponential", 16).report(100);
  CHECK(report.period == 4);
  CHECK(report.edges == 16 * 4);
  CHECK(report.degree_min == 1);
  CHECK(report.degree_max == 1);
  CHECK(report.diameter == 4);
  CHECK_FALSE(report.symmetric);
  CHECK(report.doubly_stochastic);
  CHECK(report.spectral_gap == 1);
  CHECK(report.bytes_per_round_per_peer == 400);
}

TEST_CASE("what cannot be examined is refused in words") {
  CHECK(examine(network("torus", 5).request, 1).error().message.find("n = 9 works") !=
        std::string::npos);
  CHECK(examine(network("ring", 5).request, kMaximumParameters + 1)
            .error()
            .message.find("parameters") != std::string::npos);
  CHECK(examine(network("ring", 5).request, kMaximumParameters).ok());
  CHECK(examine(network("ring", kMaximumPeers + 1).request, 1).error().message.find("peers") !=
        std::string::npos);
}

TEST_CASE("the period's matrices, written out") {
  const auto matrices = period_matrices(*network("one_peer_exponential", 4).schedule());
  using Rows = std::vector<std::vector<double>>;
  REQUIRE(matrices.size() == 2);
  CHECK(matrices[0] ==
        Rows{{0.5, 0, 0, 0.5}, {0.5, 0.5, 0, 0}, {0, 0.5, 0.5, 0}, {0, 0, 0.5, 0.5}});
  CHECK(matrices[1] ==
        Rows{{0.5, 0, 0.5, 0}, {0, 0.5, 0, 0.5}, {0.5, 0, 0.5, 0}, {0, 0.5, 0, 0.5}});
}

// Floyd–Warshall on random graphs, directed and not, from torn to dense.
TEST_CASE("diameter and connectivity agree with all-pairs shortest paths") {
  int connected = 0, torn = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    RandomStream random(seed, kNoPeer, Purpose::test);
    const int n = 1 + static_cast<int>(random.below(seed < 200 ? 12 : 40));
    const double density = random.next_double() * (seed < 200 ? 1 : 0.2);
    Graph graph{std::vector<std::vector<int>>(static_cast<std::size_t>(n))};
    constexpr int kFar = 1000;
    std::vector<std::vector<int>> hops(static_cast<std::size_t>(n),
                                       std::vector<int>(static_cast<std::size_t>(n), kFar));
    const auto at = [&hops](int i, int j) -> int& {
      return hops[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    };
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        if (i == j) at(i, j) = 0;
        else if (random.next_double() < density) at(i, j) = 1;
      }
    if (seed % 2 == 0)  // undirected, every other time
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < i; ++j) at(i, j) = at(j, i);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        if (at(i, j) == 1) graph.out[static_cast<std::size_t>(i)].push_back(j);
    for (int k = 0; k < n; ++k)
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) at(i, j) = std::min(at(i, j), at(i, k) + at(k, j));
    int longest = 0;
    for (const auto& row : hops)
      longest = std::max(longest, *std::max_element(row.begin(), row.end()));

    const auto found = diameter(graph);
    const auto pair = find_unreachable(graph);
    CHECK(found.has_value() == (longest < kFar));
    CHECK(pair.has_value() == (longest >= kFar));
    if (found) CHECK((found->exact && found->hops == longest));
    if (const auto glance =
            diameter(graph, false,
                     1)) {  // one look, where more would take too long: never more than is true
      CHECK(glance->hops <= longest);
      CHECK((glance->hops == longest || !glance->exact));
    }
    if (pair) CHECK(at(pair->from, pair->to) >= kFar);
    ++(found ? connected : torn);
    CHECK(reversed(reversed(graph)).out == graph.out);
  }
  CHECK(connected > 20);
  CHECK(torn > 20);
}
