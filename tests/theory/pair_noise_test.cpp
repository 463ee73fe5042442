// What noise of pairs hides, against closed forms, and against the best estimate of an observer.
#include "theory/pair_noise.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/linear_algebra/dense.hpp"
#include "topology/graph.hpp"

using namespace gossamer;
using namespace gossamer::theory;
using topology::Edge;
using topology::Graph;
using topology::undirected_graph;

namespace {

Graph complete(int n) {
  std::vector<Edge> edges;
  for (int a = 0; a < n; ++a)
    for (int b = a + 1; b < n; ++b) edges.push_back({a, b});
  return undirected_graph(n, edges);
}
Graph path(int n) {
  std::vector<Edge> edges;
  for (int a = 0; a + 1 < n; ++a) edges.push_back({a, a + 1});
  return undirected_graph(n, edges);
}
Graph ring(int n) {
  std::vector<Edge> edges;
  for (int a = 0; a < n; ++a) edges.push_back({a, (a + 1) % n});
  return undirected_graph(n, edges);
}

/// On a graph in which all peers are alike: (Σ⁻¹)_ii is the mean of Σ's inverse eigenvalues.
double from_eigenvalues(const std::vector<double>& laplacian, double own, double shared) {
  double mean = 0;
  for (const double value : laplacian)
    mean += 1 / (own * own + shared * shared * value) / static_cast<double>(laplacian.size());
  return 1 / std::sqrt(mean);
}

}  // namespace

TEST_CASE("complete graphs and rings have the deviations of their Laplacians' eigenvalues") {
  for (const int n : {2, 5, 16})
    for (const double shared : {0.0, 0.3, 2.0, 100.0}) {
      std::vector<double> eigenvalues(static_cast<std::size_t>(n), n);
      eigenvalues[0] = 0;
      for (const double deviation : effective_noise(complete(n), {0.7, shared, 0}))
        CHECK(deviation == doctest::Approx(from_eigenvalues(eigenvalues, 0.7, shared)));
      if (n < 3) continue;
      for (int k = 0; k < n; ++k)
        eigenvalues[static_cast<std::size_t>(k)] = 2 - 2 * std::cos(2 * std::numbers::pi * k / n);
      for (const double deviation : effective_noise(ring(n), {0.7, shared, 0}))
        CHECK(deviation == doctest::Approx(from_eigenvalues(eigenvalues, 0.7, shared)));
    }
}

TEST_CASE("colluding peers take their pairs with them, and the worst of them count") {
  // Without one of its peers a complete graph is a smaller one, and a ring is a path.
  CHECK(effective_noise(complete(6), {1, 3, 1}).front() ==
        doctest::Approx(effective_noise(complete(5), {1, 3, 0}).front()));
  CHECK(effective_noise(complete(6), {1, 3, 4}).front() ==
        doctest::Approx(effective_noise(complete(2), {1, 3, 0}).front()));
  const auto on_path = effective_noise(path(8), {1, 3, 0});
  CHECK(effective_noise(ring(9), {1, 3, 1}).front() ==
        doctest::Approx(*std::ranges::min_element(on_path)));
  // Two colluding peers on both sides of a peer know all that it shares.
  for (const double deviation : effective_noise(ring(7), {1.5, 3, 2}))
    CHECK(deviation == doctest::Approx(1.5));
  // The middle of a path of three separates its ends.
  const auto three = effective_noise(path(3), {1, 4, 1});
  CHECK(three[0] == doctest::Approx(1));
  CHECK(three[2] == doctest::Approx(1));
  CHECK(three[1] == doctest::Approx(effective_noise(complete(2), {1, 4, 0}).front()));
}

TEST_CASE("more noise of pairs hides more, up to that of all peers together") {
  double before = 0;
  for (const double shared : {0.0, 0.5, 1.0, 4.0, 30.0, 1000.0}) {
    const double deviation = effective_noise(ring(12), {0.25, shared, 0}).front();
    CHECK(deviation > before);
    CHECK(deviation <= 0.25 * std::sqrt(12) * (1 + 1e-9));
    before = deviation;
  }
  CHECK(before == doctest::Approx(0.25 * std::sqrt(12)).epsilon(1e-4));
}

// What an observer sees of one coordinate is g + noise with the covariance Σ; of a change of g_i
// alone, the best unbiased linear estimate has the weights a with a_i = 1 and the least aᵀ Σ a.
TEST_CASE("no weights estimate a peer's change with less noise, and some reach it") {
  const Graph graph =
      undirected_graph(5, std::array<Edge, 6>{{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {3, 4}, {1, 3}}});
  const PairNoise noise{0.4, 1.1, 0};
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Identity(5, 5) * 0.16;
  for (Eigen::Index i = 0; i < 5; ++i)
    for (const int j : graph.out[static_cast<std::size_t>(i)])
      covariance(i, i) += 1.21, covariance(i, j) -= 1.21;
  const auto deviations = effective_noise(graph, noise);
  for (Eigen::Index i = 0; i < 5; ++i) {
    const Eigen::VectorXd best = solve(covariance, Eigen::VectorXd::Unit(5, i));
    const double least = deviations[static_cast<std::size_t>(i)];
    const auto spread = [&](const Eigen::VectorXd& weights) {
      return std::sqrt(weights.dot(covariance * weights)) / std::abs(weights[i]);
    };
    CHECK(spread(best) == doctest::Approx(least));
    CHECK(spread(Eigen::VectorXd::Unit(5, i)) > least);
    CHECK(spread(Eigen::VectorXd::Ones(5)) > least);
    for (Eigen::Index k = 0; k < 5; ++k) {
      Eigen::VectorXd other = best;
      other[k] += 0.1;
      CHECK(spread(other) >= least * (1 - 1e-12));
    }
  }
}

TEST_CASE("the least own noise reaches what is asked for, and hardly more") {
  for (const int colluding : {0, 1})
    for (const double shared : {0.5, 20.0}) {
      const double own = own_noise_for(1.3, ring(8), {0, shared, colluding});
      const auto reached = effective_noise(ring(8), {own, shared, colluding});
      CHECK(*std::ranges::min_element(reached) >= 1.3);
      CHECK(*std::ranges::min_element(reached) < 1.3 * 1.0002);
      CHECK(own < 1.3);
    }
  CHECK(own_noise_for(1.3, ring(8), {0, 5, 2}) == doctest::Approx(1.3).epsilon(1e-3));
}

TEST_CASE("the cost counts the sets of colluding peers") {
  CHECK(effective_noise_cost(10, 0) == 1000);
  CHECK(effective_noise_cost(10, 1) == 10000);
  CHECK(effective_noise_cost(10, 3) == 120000);
}
