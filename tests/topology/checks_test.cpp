// The checks of a mixing matrix, fed with matrices that are wrong in one way each.
#include "topology/checks.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "base/philox.hpp"
#include "tests/topology/test_util.hpp"
#include "topology/building.hpp"

using namespace gossamer::topology;

namespace {

/// A ring of four with weights 1/3: right in every way.
Graph ring4() {
  const std::vector<Edge> edges = {{0, 1}, {1, 2}, {2, 3}, {0, 3}};
  return undirected_graph(4, edges);
}
WeightRows right() {
  const double third = 1.0 / 3;
  return {{{0, third}, {1, third}, {3, third}},
          {{0, third}, {1, third}, {2, third}},
          {{1, third}, {2, third}, {3, third}},
          {{0, third}, {2, third}, {3, third}}};
}

/// What the check says of this matrix on the ring, after "mixing matrix of round 7: ".
std::string verdict(const WeightRows& w) {
  const gossamer::Status status = check_round(w, ring4(), 7);
  if (status.ok()) return "right";
  CHECK(status.error().kind == gossamer::ErrorKind::invalid);
  const std::string start = "mixing matrix of round 7: ";
  CHECK(status.error().message.starts_with(start));
  return status.error().message.substr(start.size());
}

}  // namespace

TEST_CASE("a right matrix passes, an off-diagonal zero outside the graph too") {
  CHECK(verdict(right()) == "right");
  WeightRows w = right();
  w[0].insert(w[0].begin() + 2, {2, 0.0});
  CHECK(verdict(w) == "right");
}

TEST_CASE("shape") {
  WeightRows w = right();
  w.pop_back();
  CHECK(verdict(w) == "shape check failed: 3 rows for 4 peers");
  w = right();
  w[2][2].peer = 4;
  CHECK(verdict(w) == "shape check failed: row 2 names peer 4 of 4");
  w[2][2].peer = -1;
  CHECK(verdict(w) == "shape check failed: row 2 names peer -1 of 4");
  w[2][2].peer = 2;
  CHECK(verdict(w) == "shape check failed: row 2 has peer 2 after peer 2");
}

TEST_CASE("support: rows and columns may sum to 1 and the weight still be of no edge") {
  WeightRows w = right();
  const double third = 1.0 / 3;
  w[0] = {{0, third}, {1, third}, {2, third}};
  w[1] = {{0, third}, {1, third}, {3, third}};
  CHECK(verdict(w) ==
        "support check failed: W[0][2] = 0.3333333333333333, and peer 2 is no in-neighbour of peer "
        "0");
}

TEST_CASE("support has a direction") {
  const Graph circle{{{1}, {2}, {0}}};  // 0 → 1 → 2 → 0: peer 0 is an in-neighbour of peer 1
  const WeightRows along = {{{0, 0.5}, {2, 0.5}}, {{0, 0.5}, {1, 0.5}}, {{1, 0.5}, {2, 0.5}}};
  const WeightRows against = {{{0, 0.5}, {1, 0.5}}, {{1, 0.5}, {2, 0.5}}, {{0, 0.5}, {2, 0.5}}};
  CHECK(check_round(along, circle, 0).ok());
  CHECK_FALSE(check_round(against, circle, 0).ok());
}

TEST_CASE("entries: negative and not finite, off the diagonal and on it") {
  WeightRows w = right();
  w[1][0].weight = -0.25;
  CHECK(verdict(w) == "entries check failed: W[1][0] = -0.25 is not a weight ≥ 0");
  w = right();
  w[3][2].weight = std::numeric_limits<double>::quiet_NaN();
  CHECK(verdict(w) == "entries check failed: W[3][3] = nan is not a weight ≥ 0");
  w = right();
  w[3][0].weight = std::numeric_limits<double>::infinity();
  CHECK(verdict(w) == "entries check failed: W[3][0] = inf is not a weight ≥ 0");
  w = right();  // sums to 1 in rows and columns, with a negative diagonal
  for (std::size_t i = 0; i < 4; ++i)
    for (Neighbour& entry : w[i]) entry.weight = entry.peer == static_cast<int>(i) ? -1 : 1;
  CHECK(verdict(w) ==
        "entries check failed: W[0][0] = -1 is not a weight ≥ 0 (topology.allow_negative = true "
        "accepts a negative weight of a peer's own row)");
  CHECK(check_round(w, ring4(), 7, {.allow_negative = true}).ok());
  w[1][0].weight = -0.25;  // off the diagonal it is refused all the same
  CHECK_FALSE(check_round(w, ring4(), 7, {.allow_negative = true}).ok());
  w = right();
  w[3][2].weight = -std::numeric_limits<double>::infinity();
  CHECK_FALSE(check_round(w, ring4(), 7, {.allow_negative = true}).ok());
}

TEST_CASE("row sum and column sum, to 1e-12 and no closer") {
  WeightRows w = right();
  w[1][1].weight += 0.25;
  CHECK(verdict(w) == "row sum check failed: that of peer 1 is 1 +0.25, more than 1e-12 from 1");
  w = right();
  w[0][1].weight += 0.25, w[0][2].weight -= 0.25;  // row 0 keeps its sum; columns 1 and 3 do not
  CHECK(verdict(w) ==
        "column sum check failed: that of peer 1 is 1 +0.25, more than 1e-12 from 1 (algorithm "
        "push_sum or push_pull with "
        "topology.weights = out_degree takes any strongly connected graph)");
  w = right();
  w[2][1].weight += 2e-12;
  CHECK(verdict(w).starts_with("row sum check failed"));
  w = right();
  w[2][1].weight += 5e-13;
  CHECK(verdict(w) == "right");
}

TEST_CASE(
    "joint connectivity: rounds that are each torn and together whole, and rounds that stay torn") {
  const WeightRows pairs = {
      {{0, 0.5}, {1, 0.5}}, {{0, 0.5}, {1, 0.5}}, {{2, 0.5}, {3, 0.5}}, {{2, 0.5}, {3, 0.5}}};
  const WeightRows across = {
      {{0, 0.5}, {3, 0.5}}, {{1, 0.5}, {2, 0.5}}, {{1, 0.5}, {2, 0.5}}, {{0, 0.5}, {3, 0.5}}};
  CHECK(check_jointly_connected(std::vector{pairs, across}).ok());
  const auto torn = check_jointly_connected(std::vector{pairs, pairs});
  REQUIRE_FALSE(torn.ok());
  const std::string wanted =
      "joint connectivity check failed: over 2 round(s), the row of peer 0 never reaches peer 2";
  CHECK(torn.error().message.find(wanted) != std::string::npos);
}

TEST_CASE(
    "joint connectivity is strong: a way there and no way back is not enough, nor is an edge of "
    "weight 0") {
  const WeightRows one_way = {
      {{0, 1.0}}, {{0, 0.5}, {1, 0.5}}};  // not doubly stochastic: this check looks at reach alone
  const auto verdict = check_jointly_connected(std::vector<WeightRows>{one_way});
  REQUIRE_FALSE(verdict.ok());
  CHECK(verdict.error().message.find("the row of peer 1 never reaches peer 0") !=
        std::string::npos);
  const WeightRows nothing = {{{0, 1.0}, {1, 0.0}}, {{0, 0.0}, {1, 1.0}}};
  CHECK_FALSE(check_jointly_connected(std::vector<WeightRows>{nothing}).ok());
}

TEST_CASE(
    "weights: a directed graph is weighed where columns can sum to 1, and else refused in words") {
  const Graph uneven{{{1, 2}, {2}, {0}}};  // peer 2 has two in-neighbours and one out-neighbour
  CHECK(weigh(uneven, {}).error().message.find("peer 0 has 1 in-neighbours and 2 out-neighbours") !=
        std::string::npos);
  CHECK_FALSE(weigh(uneven, {"uniform", false}).ok());

  const Graph eight{
      {{1, 3}, {2}, {0}, {4}, {0}}};  // two circles through peer 0: balanced, not regular
  const auto metropolis = weigh(eight, {});
  REQUIRE_FALSE(metropolis.ok());
  CHECK(metropolis.error().message.find("peer 0 has 2 in-neighbours and peer 1 has 1") !=
        std::string::npos);
  const auto uniform = weigh(eight, {"uniform", false});
  REQUIRE(uniform.ok());
  CHECK(check_round(*uniform, eight, 0).ok());
  CHECK((*uniform)[1][0].weight == 1.0 / 3);

  CHECK(weigh(ring4(), {"equal", false}).error().message ==
        "topology.weights: 'equal' is not one of auto, metropolis, uniform, best_constant, "
        "out_degree, in_degree, given");
}

TEST_CASE("out-degree weights: on any graph columns sum to 1, and rows where they happen to") {
  const Graph uneven{{{1, 2}, {2}, {0}}};
  for (const bool lazy : {false, true}) {
    const auto rows = weigh(uneven, {.weights = "out_degree", .lazy = lazy});
    REQUIRE(rows.ok());
    CHECK(check_round(*rows, uneven, 0, {.weights = "out_degree"}).ok());
    const gossamer::Status strict = check_round(*rows, uneven, 0);
    REQUIRE_FALSE(strict.ok());
    CHECK(strict.error().message.starts_with(
        "mixing matrix of round 0: row sum check failed: that of peer 0"));

    const auto made =
        make_schedule(static_topology(uneven), {.weights = "out_degree", .lazy = lazy}, "");
    REQUIRE(made.ok());
    const MixingMatrix& w = *(*made)->at(0);
    const double share = lazy ? 0.5 : 1;
    CHECK(w.in_neighbours(2).size() == 2);
    CHECK(w.in_neighbours(2)[0].weight == share / 3);
    CHECK(w.in_neighbours(2)[1].weight == share / 2);
    CHECK(w.self_weight(0) == doctest::Approx(1 - share * 2 / 3));
    CHECK(w.self_weight(2) == doctest::Approx(1 - share / 2));
    CHECK(w.row_surplus(0) == doctest::Approx(share * (1.0 / 2 - 2.0 / 3)));
    CHECK(w.row_surplus(2) == doctest::Approx(share * (1.0 / 3 + 1.0 / 2 - 1.0 / 2)));
    CHECK_FALSE(w.doubly_stochastic());
  }
  const auto ring = make_schedule(static_topology(ring4()), {.weights = "out_degree"}, "");
  REQUIRE(ring.ok());
  for (int i = 0; i < 4; ++i) CHECK((*ring)->at(0)->row_surplus(i) == 0);
  CHECK((*ring)->at(0)->doubly_stochastic());
}

TEST_CASE("random undirected graphs: every weighing passes the checks, and is the formula") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    gossamer::RandomStream random(seed, gossamer::kNoPeer, gossamer::Purpose::test);
    const int n = 2 + static_cast<int>(random.below(30));
    const double density = random.next_double();
    std::vector<Edge> edges;
    for (int i = 0; i < n; ++i)
      for (int j = i + 1; j < n; ++j)
        if (random.next_double() < density) edges.push_back({i, j});
    const Graph graph = undirected_graph(n, edges);
    for (const WeightOptions& options : test::every_weighing()) {
      const auto w = weigh(graph, options);
      REQUIRE(w.ok());
      CHECK(check_round(*w, graph, 0).ok());
      std::size_t largest = 0;
      for (const auto& out : graph.out) largest = std::max(largest, out.size());
      for (std::size_t i = 0; i < w->size(); ++i)
        for (const auto& [peer, weight] : (*w)[i]) {
          const auto j = static_cast<std::size_t>(peer);
          if (i == j) continue;
          const std::size_t d = options.weights == "uniform"
                                    ? largest
                                    : std::max(graph.out[i].size(), graph.out[j].size());
          CHECK(weight == (options.lazy ? 0.5 : 1.0) / static_cast<double>(1 + d));
        }
    }
  }
}
