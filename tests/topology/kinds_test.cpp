// The kinds that are drawn at random or come from a paper, each held to what its source promises.
#include <doctest/doctest.h>

#include <Eigen/Core>

#include <cmath>
#include <numbers>
#include <set>

#include "base/linear_algebra/dense.hpp"
#include "tests/topology/test_util.hpp"
#include "topology/finite_time.hpp"
#include "topology/graph.hpp"

using namespace gossamer::topology;
using namespace gossamer::topology::test;

namespace {

Eigen::MatrixXd product_of_period(const MixingSchedule& schedule, Round begin) {
  const auto n = schedule.peers();
  Eigen::MatrixXd product = Eigen::MatrixXd::Identity(n, n);
  for (Round t = begin; t < begin + static_cast<Round>(schedule.period()); ++t)
    product = dense(*schedule.at(t)) * product;
  return product;
}

double distance_from_average(const Eigen::MatrixXd& product) {
  return (product.array() - 1.0 / static_cast<double>(product.rows())).abs().maxCoeff();
}

Graph graph_of(const Network& network) {
  auto topology =
      find_kind(network.request.kind)->make(network.request.context, network.request.values);
  REQUIRE_MESSAGE(topology.ok(), topology.error().message);
  return (*topology)->graph(0);
}

int largest_degree(const MixingMatrix& w) {
  std::size_t largest = 0;
  for (int i = 0; i < w.peers(); ++i) largest = std::max(largest, w.in_neighbours(i).size());
  return static_cast<int>(largest);
}

/// The fewest factors of `most` or less that n is a product of, by trying; a thousand where there
/// are none.
int fewest_factors(int n, int most) {
  if (n == 1) return 0;
  int best = 1000;
  for (int factor = 2; factor <= most; ++factor)
    if (n % factor == 0) best = std::min(best, 1 + fewest_factors(n / factor, most));
  return best;
}

}  // namespace

TEST_CASE(
    "base and simple base: the exact average in every period, within k neighbours and the paper's "
    "rounds, for all n") {
  for (int k = 1; k <= 4; ++k)
    for (int n = 1; n <= 64; ++n) {
      CAPTURE(k);
      CAPTURE(n);
      const auto simple = network("simple_base", n).set("k", k).schedule(),
                 base = network("base", n).set("k", k).schedule();
      for (const MixingSchedule* schedule : {simple.get(), base.get()}) {
        CHECK(distance_from_average(product_of_period(*schedule, 0)) < 1e-14);
        CHECK(schedule->period() <=
              std::max(1.0, 2 * std::log(n) / std::log(k + 1) + 2 + 1e-9));  // Theorem 1
        for (Round t = 0; t < static_cast<Round>(schedule->period()); ++t) {
          CHECK(largest_degree(*schedule->at(t)) <= k);
          CHECK(schedule->at(t)->symmetric());
          if (n > 1) CHECK(largest_degree(*schedule->at(t)) > 0);
        }
        CHECK(spectral_gap(*schedule) == 1);
        CHECK(rounds_to_exact(*schedule) ==
              (n == 1 ? Round{0} : static_cast<Round>(schedule->period())));
      }
      CHECK(base->period() <= simple->period());
    }
}

TEST_CASE("base graphs: the rounds that the paper's algorithms take, and larger networks") {
  const auto rounds = [](const char* kind, int n, int k) {
    return network(kind, n).set("k", k).schedule()->period();
  };
  // n = 5 = 4 + 1: two rounds in the four, an exchange, two rounds. n = 6: 2 × 3, and 3 = 2 + 1
  // takes three rounds.
  CHECK(rounds("simple_base", 5, 1) == 5);
  CHECK(rounds("simple_base", 6, 1) == 5);
  CHECK(rounds("base", 6, 1) == 4);
  CHECK(rounds("simple_base", 7, 1) == 5);
  CHECK(rounds("base", 8, 1) == 3);
  CHECK(rounds("simple_base", 7, 2) ==
        4);  // 7 = 2 · 3 + 1: two rounds in the six, an exchange, one round in each three
  CHECK(rounds("simple_base", 6, 2) == 2);  // 2 · 3: a hyper-hypercube
  CHECK(rounds("base", 3, 2) == 1);
  CHECK(rounds("simple_base", 25, 1) == 4 + 1 + 4);
  CHECK(rounds("base", 64, 7) == 2);
  for (const auto& [n, k] :
       {std::pair{255, 1}, {257, 2}, {300, 3}, {343, 5}, {509, 6}, {1000, 1}}) {
    CAPTURE(n);
    const auto schedule = network("base", n).set("k", k).schedule();
    CHECK(rounds_to_exact(*schedule) == static_cast<Round>(schedule->period()));
    CHECK(largest_degree(*schedule->at(0)) <= k);
  }
}

TEST_CASE("hyper-hypercube: the fewest factors there are") {
  for (int k = 1; k <= 9; ++k)
    for (int n = 1; n <= 400; ++n) {
      const std::vector<int> factors = smooth_factors(n, k);
      const int fewest = fewest_factors(n, k + 1);
      CHECK(static_cast<int>(factors.size()) == (fewest >= 1000 ? 0 : fewest));
      int product = 1;
      for (const int factor : factors) product *= factor;
      CHECK(product == (fewest >= 1000 ? 1 : n));
    }
}

TEST_CASE("base graphs keep their own weights by default") {
  CHECK(network("base", 5).report().weights == "given");
  CHECK(network("base", 5).lazy().report().weights == "lazy given");
  CHECK(network("base", 5).uniform().report().weights == "uniform");
  CHECK(network("ring", 5).report().weights == "metropolis");
  CHECK(network("base", 5).weighed({"given", false}).schedule()->hash() ==
        network("base", 5).schedule()->hash());
  CHECK(network("ring", 5).weighed({"given", false}).refusal().find("prescribes no weights") !=
        std::string::npos);
  CHECK(network("base", 5).lazy().gap() < 0.9);
}

TEST_CASE("static exponential: degree ⌈log2 n⌉, and for even n the gap 2/(1 + ⌈log2 n⌉)") {
  for (int n = 2; n <= 256; ++n) {
    CAPTURE(n);
    const int degree = static_cast<int>(std::ceil(std::log2(n)));
    const auto schedule = network("exponential", n).schedule();
    CHECK(largest_degree(*schedule->at(0)) == degree);
    if (n % 2 == 0) CHECK(std::abs(spectral_gap(*schedule) - 2.0 / (1 + degree)) < 1e-12);
    else CHECK(spectral_gap(*schedule) > 2.0 / (1 + degree) - 1e-12);
  }
}

TEST_CASE(
    "hypertorus: sides as equal as can be, the torus in two dimensions, the ring in one, the gap "
    "of its longest ring") {
  CHECK(network("hypertorus", 36).set("dimensions", 2).schedule()->hash() ==
        network("torus", 36).schedule()->hash());
  CHECK(network("hypertorus", 16).schedule()->hash() == network("torus", 16).schedule()->hash());
  CHECK(network("hypertorus", 17).set("dimensions", 1).schedule()->hash() ==
        network("ring", 17).schedule()->hash());
  using Sides = std::vector<std::int64_t>;
  const Sides sides{3, 4, 5}, other{4, 3, 5};
  CHECK(network("hypertorus", 60).schedule()->hash() ==
        network("hypertorus", 60).set("sides", sides).schedule()->hash());
  CHECK(network("hypertorus", 60).schedule()->hash() !=
        network("hypertorus", 60).set("sides", other).schedule()->hash());
  for (const int side : {4, 5, 6, 7}) {
    const TopologyReport report = network("hypertorus", side * side * side).report();
    CHECK(report.degree_min == 6);
    CHECK(report.diameter == 3 * (side / 2));
    const double slowest =
        2.0 / 7 *
        (1 - std::cos(2 * std::numbers::pi / side));  // and at the other end −5/7 for even sides
    CHECK(std::abs(report.spectral_gap - (side % 2 == 0 ? std::min(slowest, 2.0 / 7) : slowest)) <
          1e-12);
  }
  CHECK(network("hypertorus", 81).set("dimensions", 4).report().degree_max == 8);
  CHECK(workable(network("hypertorus", 14).refusal()) == std::vector{12, 15});
  CHECK(workable(network("hypertorus", 61).set("sides", sides).refusal()) == std::vector{60});
  CHECK(workable(network("hypertorus", 30).set("dimensions", 3).refusal()) == std::vector{27, 36});
}

TEST_CASE("binary tree: figures of a full one") {
  const TopologyReport report = network("binary_tree", 31).report();
  CHECK(report.edges == 30);
  CHECK(report.diameter == 8);
  CHECK(report.degree_max == 3);
}

TEST_CASE(
    "double binary tree: two trees, no peer at inner places of both where n is even, at most four "
    "neighbours") {
  for (int n = 2; n <= 64; ++n) {
    CAPTURE(n);
    const TopologyReport report = network("double_binary_tree", n).report();
    CHECK(report.degree_max <= 4);
    CHECK(report.edges <= 2 * (n - 1));
    CHECK(report.edges >= n - 1);
    CHECK(*report.diameter <= 2 * std::ceil(std::log2(n)));
  }
  // n = 8: the tree 0–4, 4–2, 4–6, 2–1, 2–3, 6–5, 6–7, and the same with 7 − i for i.
  const std::vector<Edge> edges{{0, 4}, {2, 4}, {4, 6}, {1, 2}, {2, 3},
                                {5, 6}, {6, 7},                           // and the mirrored:
                                {3, 7}, {3, 5}, {1, 3}, {4, 5}, {0, 1}};  // 1–2 and 5–6 are in both
  const Graph expected = undirected_graph(8, edges);
  CHECK(graph_of(network("double_binary_tree", 8)).out == expected.out);
}

// By symmetry, what is slow is antisymmetric and has one value on a clique's inner peers and one at
// its end of the bridge: with m peers in each clique and weights 1/(m + 1) on the bridge and at the
// ends, 1/m within, two by two.
TEST_CASE("dumbbell: the gap of its quotient by symmetry") {
  for (const int m : {3, 4, 8, 16, 32}) {
    CAPTURE(m);
    const double end = 1.0 / (m + 1), inner = 1.0 / m;
    Eigen::MatrixXd quotient(
        2,
        2);  // (inner, end): an inner peer has m − 2 inner neighbours and the end
    quotient << 1 - end, end, (m - 1) * end, 1 - (m - 1) * end - 2 * end;
    const double slowest = gossamer::eigenvalues(quotient).cwiseAbs().maxCoeff();
    CHECK(inner > 0);
    CHECK(std::abs(network("dumbbell", 2 * m).gap() - (1 - slowest)) < 1e-12);
    CHECK(network("dumbbell", 2 * m).report().diameter == 3);
  }
}

TEST_CASE(
    "random matching: all peers are paired, at most one rests, every pair comes up, the rate is as "
    "in theory") {
  for (const int n : {2, 3, 8, 15}) {
    CAPTURE(n);
    const auto topology = find_kind("random_matching")->make({n, 5}, {});
    REQUIRE(topology.ok());
    std::vector<Graph> graphs;
    for (Round t = 0; t < 400; ++t) {
      graphs.push_back((*topology)->graph(t));
      CHECK(is_symmetric(graphs.back()));
      CHECK(count_edges(graphs.back()) == n / 2 * 2);
      for (const auto& out : graphs.back().out) CHECK(out.size() <= 1);
    }
    CHECK(count_edges(union_of(graphs)) == n * (n - 1));
    CHECK((*topology)->graph(7).out ==
          (*find_kind("random_matching")->make({n, 5}, {}))->graph(7).out);
  }
  // E‖x⁺‖² = (1 − n/(2(n − 1)))‖x‖²; for many peers a round hardly strays from its mean.
  CHECK(network("random_matching", 4096).gap() ==
        doctest::Approx(1 - std::sqrt(0.5)).epsilon(0.02));
}

TEST_CASE(
    "random regular: regular, simple, connected, another one for another seed, dense ones too, and "
    "an expander") {
  for (const int degree : {3, 4, 5, 8})
    for (const int n : {6, 10, 14, 30, 64}) {
      if (n <= degree) continue;
      CAPTURE(n);
      CAPTURE(degree);
      std::set<std::vector<std::vector<int>>> seen;
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const Graph graph = graph_of(network("random_regular", n).set("degree", degree).seed(seed));
        for (std::size_t i = 0; i < graph.out.size(); ++i) {
          CHECK(static_cast<int>(graph.out[i].size()) == degree);
          CHECK(std::adjacent_find(graph.out[i].begin(), graph.out[i].end(),
                                   std::greater_equal<>()) == graph.out[i].end());
          CHECK(std::find(graph.out[i].begin(), graph.out[i].end(), static_cast<int>(i)) ==
                graph.out[i].end());
        }
        CHECK(is_symmetric(graph));
        CHECK_FALSE(find_unreachable(graph));
        seen.insert(graph.out);
      }
      if (n > 10) CHECK(seen.size() == 5);
    }
  CHECK(graph_of(network("random_regular", 5)).out == graph_of(network("complete", 5)).out);
  CHECK(workable(network("random_regular", 9).set("degree", 5).refusal()) == std::vector{8, 10});
  CHECK(workable(network("random_regular", 3).refusal()) == std::vector{5});
  // Friedman: λ2 of the edges is 2 √(d − 1) or little more, so with weights 1/(d + 1) the gap is 1
  // − (1 + 2 √(d − 1))/(d + 1).
  for (const int degree : {4, 6}) {
    const double ideal = 1 - (1 + 2 * std::sqrt(degree - 1)) / (degree + 1);
    CHECK(network("random_regular", 1000).set("degree", degree).gap() ==
          doctest::Approx(ideal).epsilon(0.05));
  }
}

TEST_CASE(
    "Erdős–Rényi: the number of edges it should have, connected, all pairs alike, and refused in "
    "words") {
  double edges = 0, first = 0, last = 0;
  constexpr int kSeeds = 400, kPeers = 40;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Graph graph = graph_of(network("erdos_renyi", kPeers).set("p", 0.25).seed(seed));
    CHECK_FALSE(find_unreachable(graph));
    CHECK(is_symmetric(graph));
    edges += static_cast<double>(count_edges(graph)) / 2;
    first += std::binary_search(graph.out[0].begin(), graph.out[0].end(), 1);
    last += std::binary_search(graph.out[38].begin(), graph.out[38].end(), 39);
  }
  const double mean = 0.25 * kPeers * (kPeers - 1) / 2, deviation = std::sqrt(mean * 0.75 / kSeeds);
  CHECK(std::abs(edges / kSeeds - mean) < 4 * deviation);
  for (const double count : {first, last}) CHECK(std::abs(count - 100) < 4 * std::sqrt(75));
  CHECK(graph_of(network("erdos_renyi", 9).set("p", 1.0)).out ==
        graph_of(network("complete", 9)).out);
  const std::string refusal = network("erdos_renyi", 64).set("p", 0.01).refusal();
  CHECK(refusal.find("p = 0.13 would be") != std::string::npos);
  CHECK(network("erdos_renyi", 64).set("p", 1.5).refusal() ==
        "topology.p: 1.5 is too large, give at most 1");
}

TEST_CASE(
    "EquiStatic: weights of the paper, circulant, never torn, and a gap that holds as n grows") {
  for (int n = 2; n <= 64; ++n)
    for (const bool directed : {false, true})
      for (const int m : {1, 3}) {
        CAPTURE(n);
        const auto schedule =
            network("equistatic", n).set("m", m).set("directed", directed).schedule();
        const MixingMatrix& w = *schedule->at(0);
        CHECK(std::abs(w.self_weight(0) - 1.0 / n) < 1e-15);
        CHECK(static_cast<int>(w.in_neighbours(0).size()) <= (directed ? m : 2 * m));
        CHECK((directed || w.symmetric()));
        // M A(a)'s share: every weight is a multiple of (n − 1)/(n M), or of half of it.
        for (const auto& [peer, weight] : w.in_neighbours(0)) {
          const double shares = weight * n * m / (n - 1.0) * (directed ? 1 : 2);
          CHECK(std::abs(shares - std::round(shares)) < 1e-9);
        }
      }
  for (const int n : {64, 512, 4096})
    CHECK(network("equistatic", n).set("m", 12).set("directed", true).gap() > 0.1);
}
