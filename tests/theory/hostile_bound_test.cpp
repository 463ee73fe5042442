// The weight that hostile neighbours may have under ClippedGossip and CS+: against closed forms,
// against the honest part of W for sets of hostile peers, and in rounds with hostile rows.
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
    const auto bound = hostile_bounds(*network("complete", n).schedule());
    REQUIRE(bound);
    CHECK(bound->clipped.weight == doctest::Approx(root * root).epsilon(1e-9));
    CHECK(bound->clipped.neighbours == neighbours);  // of weight 1/n each
  }
  CHECK_FALSE(hostile_bounds(*network("exponential", 16).schedule()));
  CHECK_FALSE(hostile_bounds(*network("one_peer_exponential", 16).schedule()));
  CHECK_FALSE(hostile_bounds(*network("ring", 1).schedule()));
  const auto reason = [](const char* kind, int n) {
    return no_hostile_bounds(*network(kind, n).schedule());
  };
  CHECK(reason("exponential", 16) == "W is not symmetric");
  CHECK(reason("one_peer_exponential", 16) == "W varies");
  CHECK(reason("ring", 1) == "a single peer has no neighbours");
  CHECK(reason("ring", 16).empty());
}

TEST_CASE("the bound of a narrow gap is about (γ / c)², and no ring of 16 has a hostile peer") {
  const auto schedule = network("ring", 64).schedule();
  const auto bound = hostile_bounds(*schedule);
  REQUIRE(bound);
  const double gap = topology::spectral_gap(*schedule), c = 1.25 * std::sqrt(2 * 4.0 / 3);
  CHECK(bound->clipped.weight == doctest::Approx(gap * gap / (c * c)).epsilon(0.01));
  CHECK(bound->clipped.neighbours == 0);
  CHECK(hostile_bounds(*network("ring", 16).schedule())->clipped.neighbours == 0);
}

TEST_CASE("with hostile weight below the bound, the gap of the honest part exceeds c √δ") {
  for (const char* kind : {"complete", "torus", "random_regular", "hypercube"}) {
    CAPTURE(kind);
    const auto schedule = network(kind, 64).schedule();
    const Eigen::MatrixXd w = topology::dense(*schedule->at(0));
    const auto bound = hostile_bounds(*schedule);
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
      if (delta < bound->clipped.weight) CHECK(gap > 1.25 * std::sqrt(2 * (1 - values[0]) * delta));
    }
  }
}

TEST_CASE("rounds with hostile rows below the bound bring the honest peers nearer") {
  const int n = 16;
  const auto schedule = network("complete", n).schedule();
  const int most = hostile_bounds(*schedule)->clipped.neighbours;
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

TEST_CASE("CS+: a fifth of μ₂ where no eigenvalue is negative and neighbours weigh the same") {
  for (const auto& [kind, n] : {std::pair("complete", 16), {"complete", 64}}) {
    const auto bound = hostile_bounds(*network(kind, n).schedule());
    REQUIRE(bound);
    CHECK(bound->cs_plus.weight == doctest::Approx(0.2).epsilon(1e-9));  // μ₂ = 1
    CHECK(bound->cs_plus.neighbours == static_cast<int>(std::ceil(0.2 * n)) - 1);
  }
  const auto lazy = network("torus", 36).lazy().schedule();
  const auto ends = topology::symmetric_ends(*lazy->at(0), lazy->lattice());
  REQUIRE(ends->low >= 0);
  CHECK(hostile_bounds(*lazy)->cs_plus.weight ==
        doctest::Approx((1 - ends->high) / 5).epsilon(1e-6));
  // A negative eigenvalue leaves less, and neighbours of unlike weights too.
  const auto torus = network("torus", 36).schedule();
  const auto of_torus = topology::symmetric_ends(*torus->at(0), torus->lattice());
  REQUIRE(of_torus->low < 0);
  CHECK(hostile_bounds(*torus)->cs_plus.weight < (1 - of_torus->high) / 5);
  CHECK(hostile_bounds(*torus)->cs_plus.weight > 0);
  CHECK(hostile_bounds(*network("star", 8).schedule())->cs_plus.neighbours == 0);
}

TEST_CASE("CS+: rounds with hostile rows below the bound bring the honest peers nearer") {
  // In a round, the 2b farthest rows are clipped to the radius. Each hostile neighbour of peer i
  // sends a row at that distance, away from the mean or along the slowest direction.
  const int n = 32;
  const auto schedule = network("complete", n).schedule();
  const int b = hostile_bounds(*schedule)->cs_plus.neighbours;
  REQUIRE(b == 6);
  const double weight = 1.0 / n;
  const int honest = n - b;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    RandomStream random(seed, kNoPeer, Purpose::data);
    Eigen::MatrixXd x = normal(random, honest, 3);
    for (int round = 0; round < 10; ++round) {
      const double before = distance(x);
      const Eigen::RowVectorXd mean = x.colwise().mean();
      Eigen::MatrixXd next = x;
      for (Eigen::Index i = 0; i < honest; ++i) {
        std::vector<double> distances;
        for (Eigen::Index j = 0; j < honest; ++j)
          if (j != i) distances.push_back((x.row(j) - x.row(i)).norm());
        std::ranges::sort(distances);
        // The hostile rows are among the 2b farthest, so that b honest ones are clipped.
        const double radius = distances[static_cast<std::size_t>(honest - 1 - b - 1)];
        for (Eigen::Index j = 0; j < honest; ++j) {
          const Eigen::RowVectorXd to = x.row(j) - x.row(i);
          next.row(i) += weight * (to.norm() > radius ? radius / to.norm() : 1.0) * to;
        }
        next.row(i) += b * weight * radius * (x.row(i) - mean).normalized();
      }
      x = next;
      CHECK(distance(x) < before);
    }
  }
}
