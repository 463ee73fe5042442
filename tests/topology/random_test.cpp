// Random sequences: what their laws promise, over the rounds that they draw. Their definitions are
// held to the papers' in tests/python/commands/test_random_topologies.py.
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <set>

#include "base/linear_algebra/dense.hpp"
#include "tests/topology/test_util.hpp"
#include "topology/convergence.hpp"
#include "topology/graph.hpp"
#include "topology/recent_rounds.hpp"
#include "topology/spectrum.hpp"

using namespace gossamer::topology;
using namespace gossamer::topology::test;

namespace {

std::vector<Network> random_networks(int n) {
  return {network("random_matching", n),
          network("equidyn", n),
          network("equidyn", n).set("m", 2),
          network("equidyn", n).set("directed", true).set("eta", 0.4),
          network("epidemic", n).set("degree", 3),
          network("epidemic", n).set("degree", 2).set("local", true),
          network("matcha", n).set("budget", 0.4),
          network("matcha", n).set("base", std::string("dumbbell")).lazy()};
}

bool is_undirected_in(const MixingSchedule& schedule, Round rounds) {
  for (Round t = 0; t < rounds; ++t)
    if (!is_symmetric(graph_of(*schedule.at(t)))) return false;
  return true;
}

void check_proper(const Graph& graph) {
  std::size_t largest = 0, edges = 0;
  std::set<std::pair<int, int>> seen;
  for (const auto& out : graph.out) largest = std::max(largest, out.size());
  const auto matchings = matchings_of(graph);
  CHECK(matchings.size() <= largest + 1);
  for (const auto& matching : matchings) {
    std::set<int> ends;
    for (const auto& [a, b] : matching) {
      CHECK(std::ranges::count(graph.out[static_cast<std::size_t>(a)], b) == 1);
      CHECK((ends.insert(a).second && ends.insert(b).second));
      seen.insert({std::min(a, b), std::max(a, b)});
      ++edges;
    }
    CHECK_FALSE(matching.empty());
  }
  CHECK(edges == seen.size());
  CHECK(static_cast<std::int64_t>(2 * edges) == count_edges(graph));
}

}  // namespace

TEST_CASE("a random sequence: the same at every asking, another for another seed, and its law") {
  for (const Network& asked : random_networks(10)) {
    CAPTURE(asked.request.kind);
    const auto schedule = asked.schedule(), again = asked.schedule();
    Network reseeded = asked;
    const auto other = reseeded.seed(1).schedule();
    CHECK(schedule->period() == 0);
    CHECK(schedule->hash() == again->hash());
    CHECK(schedule->hash() != other->hash());
    int different = 0;
    for (const Round t : {Round{0}, Round{1}, Round{7}, Round{1} << 20, Round{1} << 40}) {
      CHECK(dense(*schedule->at(t)) == dense(*again->at(t)));
      different += dense(*schedule->at(t)) != dense(*other->at(t));
    }
    CHECK(different > 0);
    CHECK(is_undirected(*schedule) == is_undirected_in(*schedule, 100));
    CHECK(is_undirected(RecentRounds(*schedule)) == is_undirected(*schedule));
    CHECK(schedule->law().alike == RecentRounds(*schedule).law().alike);
  }
}

TEST_CASE("the expected factor is that of the drawn rounds, and of the slowest direction") {
  constexpr Round kRounds = 20'000;
  for (const Network& asked : random_networks(8)) {
    CAPTURE(asked.request.kind);
    const auto schedule = asked.schedule();
    Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(8, 8);
    for (Round t = 0; t < kRounds; ++t) {
      const Eigen::MatrixXd w = dense(*schedule->at(t));
      gram += w.transpose() * w / static_cast<double>(kRounds);
    }
    gram.array() -= 1.0 / 8;
    const double factor = mean_square_factor(*schedule);
    CHECK(symmetric_eigenvalues(gram)(7) == doctest::Approx(factor).epsilon(0.02));
    CHECK(spectral_gap(*schedule) == doctest::Approx(1 - std::sqrt(factor)));
  }
}

TEST_CASE("weights that a law says nothing of leave the rate unknown") {
  CHECK(std::isnan(network("equidyn", 8).weighed({"metropolis", false}).gap()));
  CHECK(std::isnan(network("matcha", 8).weighed({"uniform", false}).gap()));
  CHECK(std::isnan(network("epidemic", 8).set("local", true).weighed({"out_degree", false}).gap()));
  const auto known = network("epidemic", 8).set("degree", 3).weighed({"metropolis", false});
  CHECK(known.gap() == doctest::Approx(1 - std::sqrt((1 - 3.0 / 7) / 4)));
}

TEST_CASE("effective neighbours: in expectation where all peers are alike, else sampled") {
  bool sampled = false;
  const auto matching = network("random_matching", 16).schedule();
  CHECK(effective_neighbours(*matching, 0.9, sampled) > 1);
  CHECK_FALSE(sampled);
  // Pairs of η = 1/2 average nearly as random matchings do, and so do their effective neighbours.
  const double pairs = effective_neighbours(*network("equidyn", 16).schedule(), 0.9, sampled);
  CHECK(sampled);
  CHECK(pairs > 1);
  CHECK(pairs < 1.05 * effective_neighbours(*matching, 0.9, sampled));
  CHECK(std::isnan(
      effective_neighbours(*network("epidemic", 16).set("local", true).schedule(), 0.9, sampled)));
}

TEST_CASE("in_degree: rows sum to 1 on any graph, and only the algorithms' mean moves") {
  const auto star = network("star", 5).weighed({"in_degree", false}).schedule();
  const Eigen::MatrixXd w = dense(*star->at(0));
  CHECK((w.rowwise().sum().array() - 1).abs().maxCoeff() < 1e-15);
  CHECK(w(0, 1) == doctest::Approx(0.2));
  CHECK(w(1, 0) == doctest::Approx(0.5));
  CHECK_FALSE(star->at(0)->doubly_stochastic());
  // Brauer: W − 11ᵀ/n has W's eigenvalues beside the 1.
  Eigen::VectorXd moduli = eigenvalues(w).cwiseAbs();
  std::sort(moduli.begin(), moduli.end());
  CHECK(spectral_gap(*star) == doctest::Approx(1 - moduli(3)).epsilon(1e-9));
  CHECK_FALSE(rounds_to_exact(*star).has_value());
  CHECK(network("ring", 6).weighed({"in_degree", false}).schedule()->at(0)->doubly_stochastic());
}

TEST_CASE("matchings: every edge once, no peer twice, at most one more than the largest degree") {
  for (const char* kind : {"ring", "star", "path", "torus", "complete", "grid", "hypercube",
                           "dumbbell", "binary_tree", "erdos_renyi", "random_regular"})
    for (const int n : {1, 2, 3, 5, 7, 8, 9, 16, 33, 64}) {
      CAPTURE(kind);
      CAPTURE(n);
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const auto schedule = network(kind, n).seed(seed).try_schedule();
        if (schedule.ok()) check_proper(graph_of(*(*schedule)->at(0)));
      }
    }
  // The Petersen graph needs one colour more than its degree of 3.
  std::vector<Edge> petersen;
  for (int i = 0; i < 5; ++i) {
    petersen.push_back({i, (i + 1) % 5});
    petersen.push_back({i, 5 + i});
    petersen.push_back({5 + i, 5 + (i + 2) % 5});
  }
  const Graph graph = undirected_graph(10, petersen);
  check_proper(graph);
  CHECK(matchings_of(graph).size() == 4);
}

TEST_CASE("MATCHA on an even ring: two matchings that are equally likely, by symmetry") {
  // ρ(α) = max_λ 1 − 2αpλ + α²(p²λ² + 2p(1 − p)λ) over the ring's λ = 2 − 2 cos.
  constexpr double kBudget = 0.6;
  const auto rho = [](double alpha) {
    double worst = 0;
    for (int k = 1; k < 8; ++k) {
      const double mean = kBudget * (2 - 2 * std::cos(std::numbers::pi * k / 4));
      worst = std::max(
          worst, 1 - 2 * alpha * mean + alpha * alpha * (mean * mean + 2 * (1 - kBudget) * mean));
    }
    return worst;
  };
  double best = 0;
  for (double alpha = 0; alpha < 1; alpha += 1e-5)
    if (rho(alpha) < rho(best)) best = alpha;
  Network asked = network("matcha", 8).set("budget", kBudget);
  CHECK(best > 0.5);  // a peer of two active edges would keep less than nothing
  CHECK(asked.gap() == doctest::Approx(1 - std::sqrt(rho(0.5))).epsilon(1e-5));
  asked.request.weights.allow_negative = true;
  CHECK(asked.gap() == doctest::Approx(1 - std::sqrt(rho(best))).epsilon(1e-5));
  const auto capped = network("matcha", 8).set("budget", kBudget).schedule(),
             published = asked.schedule();
  CHECK(capped->hash() != published->hash());
  constexpr int kRounds = 4000;
  double edges = 0, least = 1, least_capped = 1;
  for (Round t = 0; t < kRounds; ++t) {
    const auto w = capped->at(t), negative = published->at(t);
    for (int i = 0; i < 8; ++i) {
      edges += static_cast<double>(w->in_neighbours(i).size());
      least_capped = std::min(least_capped, w->self_weight(i));
      least = std::min(least, negative->self_weight(i));
    }
  }
  CHECK(edges / (8 * kRounds) == doctest::Approx(2 * kBudget).epsilon(0.03));
  CHECK(least_capped == 0);
  CHECK(least == doctest::Approx(1 - 2 * best).epsilon(1e-3));
}
