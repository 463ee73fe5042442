// The weight that hostile neighbours may have under ClippedGossip: against closed forms, against
// the honest part of W for sets of hostile peers, and in rounds with hostile rows.
#include "theory/hostile_bound.hpp"

#include <Eigen/Eigenvalues>

#include <cmath>

#include "tests/theory/test_util.hpp"
#include "topology/spectrum.hpp"

using namespace gossamer;
using namespace gossamer::theory;
using namespace gossamer::theory::test;

namespace {

/// The peers that are not among the `hostile`.
std::vector<int> honest_of(int n, const std::vector<int>& hostile) {
  std::vector<int> honest;
  for (int i = 0; i < n; ++i)
    if (std::ranges::find(hostile, i) == hostile.end()) honest.push_back(i);
  return honest;
}

/// W̃: W on the honest peers, with the weight of hostile neighbours added to the own weight.
Eigen::MatrixXd honest_part(const Eigen::MatrixXd& w, const std::vector<int>& honest) {
  Eigen::MatrixXd part = w(honest, honest);
  for (Eigen::Index i = 0; i < part.rows(); ++i) part(i, i) += 1 - part.row(i).sum();
  return part;
}

double distance(const Eigen::MatrixXd& x) { return (x.rowwise() - x.colwise().mean()).norm(); }

/// A round of ClippedGossip at the honest peers with the radius of the paper. Each hostile
/// neighbour of a peer i sends x_i + τ_i s, the farthest that is not clipped, with a direction s.
Eigen::MatrixXd clipped_round(const Eigen::MatrixXd& w, const std::vector<int>& honest,
                              const Eigen::MatrixXd& x, const Eigen::MatrixXd& direction) {
  Eigen::MatrixXd next = x;
  for (std::size_t a = 0; a < honest.size(); ++a) {
    const auto i = static_cast<Eigen::Index>(a);
    double hostile = 1 - w(honest[a], honest).sum(), sum = 0;
    for (std::size_t b = 0; b < honest.size(); ++b)
      sum +=
          w(honest[a], honest[b]) * (x.row(static_cast<Eigen::Index>(b)) - x.row(i)).squaredNorm();
    const double radius = hostile > 1e-12 ? std::sqrt(sum / hostile) : 1e300;
    for (std::size_t b = 0; b < honest.size(); ++b) {
      const Eigen::RowVectorXd to = x.row(static_cast<Eigen::Index>(b)) - x.row(i);
      const double clip = to.norm() > radius ? radius / to.norm() : 1;
      next.row(i) += w(honest[a], honest[b]) * clip * to;
    }
    if (hostile > 1e-12) next.row(i) += hostile * radius * direction.row(i).normalized();
  }
  return next;
}

}  // namespace

TEST_CASE("closed forms: a complete graph, and graphs without a bound") {
  // γ = 1 and λ_min = 0: √δ is the root of δ + (5/4) √2 √δ = 1.
  const double c = 1.25 * std::sqrt(2.0), root = (std::sqrt(c * c + 4) - c) / 2;
  for (const auto& [n, neighbours] : {std::pair{2, 0}, {16, 3}, {64, 13}}) {
    const auto bound = hostile_bound(*network("complete", n).schedule());
    REQUIRE(bound);
    CHECK(bound->weight == doctest::Approx(root * root).epsilon(1e-9));
    CHECK(bound->neighbours == neighbours);  // of weight 1/n each
  }
  CHECK_FALSE(hostile_bound(*network("exponential", 16).schedule()));
  CHECK_FALSE(hostile_bound(*network("one_peer_exponential", 16).schedule()));
  CHECK_FALSE(hostile_bound(*network("ring", 1).schedule()));
}

TEST_CASE("the bound of a narrow gap is about (γ / c)², and no ring of 16 has a hostile peer") {
  const auto schedule = network("ring", 64).schedule();
  const auto bound = hostile_bound(*schedule);
  REQUIRE(bound);
  const double gap = topology::spectral_gap(*schedule), c = 1.25 * std::sqrt(2 * 4.0 / 3);
  CHECK(bound->weight == doctest::Approx(gap * gap / (c * c)).epsilon(0.01));
  CHECK(bound->neighbours == 0);
  CHECK(hostile_bound(*network("ring", 16).schedule())->neighbours == 0);
}

TEST_CASE("with hostile weight below the bound, the gap of the honest part exceeds c √δ") {
  for (const char* kind : {"complete", "torus", "random_regular", "hypercube"}) {
    CAPTURE(kind);
    const auto schedule = network(kind, 64).schedule();
    const Eigen::MatrixXd w = topology::dense(*schedule->at(0));
    const auto bound = hostile_bound(*schedule);
    REQUIRE(bound);
    for (const std::vector<int>& hostile : {std::vector{0}, {3, 17}, {0, 1, 2, 3}}) {
      const std::vector<int> honest = honest_of(64, hostile);
      double delta = 0;
      for (const int i : honest) delta = std::max(delta, 1 - w(i, honest).sum());
      Eigen::VectorXd values =
          Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(honest_part(w, honest)).eigenvalues();
      const auto last = values.size() - 1;
      const double gap = 1 - std::max(std::abs(values[0]), std::abs(values[last - 1]));
      CHECK(gap > topology::spectral_gap(*schedule) - delta - 1e-9);
      if (delta < bound->weight) CHECK(gap > 1.25 * std::sqrt(2 * (1 - values[0]) * delta));
    }
  }
}

TEST_CASE("rounds with hostile rows below the bound bring the honest peers nearer") {
  const int n = 16;
  const auto schedule = network("complete", n).schedule();
  const int most = hostile_bound(*schedule)->neighbours;
  const Eigen::MatrixXd w = topology::dense(*schedule->at(0));
  std::vector<int> hostile(static_cast<std::size_t>(most));
  for (int i = 0; i < most; ++i) hostile[static_cast<std::size_t>(i)] = 5 * i;
  const std::vector<int> honest = honest_of(n, hostile);
  RandomStream random(7, kNoPeer, Purpose::data);
  Eigen::MatrixXd x = normal(random, n - most, 5);
  for (int round = 0; round < 10; ++round) {
    const double before = distance(x);
    // Away from the mean: the direction that hurts most.
    x = clipped_round(w, honest, x, x.rowwise() - x.colwise().mean());
    CHECK(distance(x) < before);
  }
}
