// Quick ways to a spectrum against the whole one, and what is predicted from it against what
// happens.
#include <doctest/doctest.h>

#include <cmath>

#include "base/linear_algebra/dense.hpp"
#include "base/philox.hpp"
#include "tests/topology/test_util.hpp"
#include "topology/building.hpp"
#include "topology/convergence.hpp"
#include "topology/krylov.hpp"
#include "topology/lattice.hpp"
#include "topology/weights.hpp"

using namespace gossamer;
using namespace gossamer::topology;
using namespace gossamer::topology::test;

namespace {

/// Eigenvalues of a symmetric W, ascending, the last 1 left out.
Eigen::VectorXd whole_spectrum(const MixingMatrix& w) {
  const Eigen::VectorXd all = symmetric_eigenvalues(dense(w));
  return all.head(all.size() - 1);
}

/// Static and symmetric ones of every shape: wide gaps and narrow ones, few distinct eigenvalues
/// and many.
std::vector<std::pair<std::string, int>> symmetric_networks() {
  return {{"path", 2},          {"path", 3},
          {"path", 60},         {"path", 400},
          {"ring", 61},         {"star", 50},
          {"complete", 40},     {"grid", 300},
          {"binary_tree", 300}, {"double_binary_tree", 200},
          {"dumbbell", 80},     {"random_regular", 300},
          {"erdos_renyi", 300}, {"hypercube", 128},
          {"equistatic", 100}};
}

Convergence convergence_of(const Network& network, double decay = 0.9) {
  const auto schedule = network.schedule();
  return predict_convergence(*schedule, spectral_gap(*schedule), 10, decay);
}

}  // namespace

TEST_CASE(
    "both ends of a sparse spectrum, by Lanczos and its inverse, are those of the whole one") {
  for (const auto& [kind, n] : symmetric_networks())
    for (const char* rule : {"metropolis", "uniform"}) {
      CAPTURE(kind);
      CAPTURE(n);
      const auto schedule = network(kind, n).weighed({rule, false}).schedule();
      const Eigen::VectorXd whole = whole_spectrum(*schedule->at(0));
      const auto ends = sparse_ends(*schedule->at(0), true);
      REQUIRE(ends);
      CHECK(std::abs(ends->low - whole(0)) < 1e-10);
      CHECK(std::abs(ends->high - whole(n - 2)) < 1e-10);
      const auto nearest = sparse_ends(*schedule->at(0), false);
      REQUIRE(nearest);
      const double radius = std::max(std::abs(nearest->low), std::abs(nearest->high));
      CHECK(std::abs(radius - whole.cwiseAbs().maxCoeff()) < 1e-10);
    }
}

TEST_CASE("large networks have the gaps of their closed forms, relative to 1e-8") {
  const double pi = std::acos(-1.0);
  const auto relative = [](double found, double expected) {
    return std::abs(found / expected - 1);
  };
  CHECK(relative(network("path", 20000).gap(), 4.0 / 3 * std::pow(std::sin(pi / 40000), 2)) < 1e-8);
  CHECK(relative(network("ring", 100000).gap(), 4.0 / 3 * std::pow(std::sin(pi / 100000), 2)) <
        1e-5);  // 1e-16 of 1e-9
  CHECK(relative(network("star", 5000).gap(), 1.0 / 5000) < 1e-8);
  CHECK(relative(network("grid", 900).uniform().gap(), 4.0 / 5 * std::pow(std::sin(pi / 60), 2)) <
        1e-8);
  CHECK(relative(network("exponential", 4096).gap(), 2.0 / 13) < 1e-12);
  CHECK(network("one_peer_exponential", 65536).gap() == 1);
  CHECK(network("base", 1000).set("k", 2).gap() == 1);
}

TEST_CASE(
    "Fourier sums: every eigenvalue on ring, torus, hypercube, directed circulants; none where W "
    "differs by place") {
  for (const char* kind :
       {"ring", "torus", "hypertorus", "hypercube", "complete", "exponential", "equistatic"}) {
    const auto schedule = network(kind, 64).lazy().schedule();
    const auto found = lattice_eigenvalues(*schedule->at(0), schedule->lattice());
    REQUIRE_MESSAGE(found, kind);
    const Eigen::MatrixXd w = dense(*schedule->at(0));
    const Eigen::VectorXcd wanted = eigenvalues(w);
    for (const auto& value : *found)  // each is one of them, and their powers sum alike
      CHECK((wanted.array() - value).abs().minCoeff() < 1e-7);
    std::complex<double> sum = 0, squares = 0;
    for (const auto& value : *found) sum += value, squares += value * value;
    CHECK(std::abs(sum - w.trace()) < 1e-10);
    CHECK(std::abs(squares - (w * w).trace()) < 1e-10);
  }
  const auto ring = network("ring", 12).schedule(), path = network("path", 12).schedule();
  CHECK_FALSE(lattice_eigenvalues(*path->at(0), std::vector{12}));
  CHECK_FALSE(lattice_eigenvalues(*ring->at(0), std::vector{3, 4}));
  CHECK_FALSE(lattice_eigenvalues(*ring->at(0), std::vector{13}));
  CHECK_FALSE(lattice_eigenvalues(*ring->at(0), {}));
  CHECK_FALSE(lattice_eigenvalues(*network("grid", 16).schedule()->at(0), std::vector{4, 4}));
}

TEST_CASE("Arnoldi: the radius of a period that is no lattice is that of its product") {
  for (const int n : {13, 50, 131}) {
    const auto schedule = network("base", n).lazy().schedule();
    const Operator period = [&](const Eigen::VectorXd& x) {
      Eigen::VectorXd result = x;
      for (int t = 0; t < schedule->period(); ++t)
        result = mixed(*schedule->at(static_cast<Round>(t)), result);
      return result;
    };
    const auto radius = arnoldi_radius(period, n);
    REQUIRE(radius);
    CHECK(1 - std::pow(*radius, 1.0 / schedule->period()) ==
          doctest::Approx(spectral_gap(*schedule)).epsilon(1e-9));
  }
}

TEST_CASE(
    "best constant: I − 2/(λ1 + λn−1) L, both ends of its spectrum alike, and no constant is "
    "better") {
  for (const char* kind :
       {"ring", "path", "torus", "hypercube", "complete", "random_regular", "dumbbell"}) {
    CAPTURE(kind);
    const auto schedule = network(kind, 16).weighed({"best_constant", false}).try_schedule();
    if (!schedule.ok()) {
      CHECK(schedule.error().message.find("topology.allow_negative = true") != std::string::npos);
      CHECK(network(kind, 16).weighed({"best_constant", true}).refusal() == "");
      continue;
    }
    const Eigen::VectorXd found = whole_spectrum(*(*schedule)->at(0));
    CHECK(std::abs(found(0) + found(14)) < 1e-12);
    const Eigen::MatrixXd adjacency = (dense(*(*schedule)->at(0)).array() > 0).cast<double>();
    Eigen::MatrixXd laplacian = -adjacency;
    laplacian.diagonal().setZero();
    laplacian.diagonal() = -laplacian.rowwise().sum();
    const Eigen::VectorXd values = symmetric_eigenvalues(laplacian);
    CHECK((*schedule)->at(0)->in_neighbours(0)[0].weight ==
          doctest::Approx(2 / (values(15) + values(1))).epsilon(1e-12));
    CHECK(spectral_gap(**schedule) >= network(kind, 16).gap() - 1e-12);
  }
  CHECK(network("star", 9)
            .weighed({"best_constant", false})
            .refusal()
            .find("peer 0 would keep -0.6") != std::string::npos);
  CHECK(network("exponential", 9).weighed({"best_constant", false}).refusal().find("directed") !=
        std::string::npos);
  CHECK(network("base", 9)
            .weighed({"best_constant", false})
            .refusal()
            .find("connected in every round") != std::string::npos);
}

TEST_CASE("rounds to the exact average: a period's, one, or never") {
  CHECK(convergence_of(network("one_peer_exponential", 32)).rounds_to_exact == Round{5});
  CHECK_FALSE(convergence_of(network("one_peer_exponential", 33)).rounds_to_exact);
  CHECK_FALSE(convergence_of(network("one_peer_exponential", 32).lazy()).rounds_to_exact);
  CHECK(convergence_of(network("complete", 9)).rounds_to_exact == Round{1});
  CHECK(convergence_of(network("complete", 1)).rounds_to_exact == Round{0});
  CHECK_FALSE(convergence_of(network("ring", 9)).rounds_to_exact);
  CHECK_FALSE(convergence_of(network("hypercube", 16)).rounds_to_exact);
  CHECK_FALSE(convergence_of(network("random_matching", 12)).rounds_to_exact);
  // de Bruijn: the in-neighbours of peer i are 2i and 2i + 1 (mod 8), static, and after three
  // rounds all rows have equal weight at every peer.
  WeightRows rows(8);
  for (std::size_t i = 0; i < 8; ++i) {
    const int first = static_cast<int>(2 * i % 8);
    for (const int j : {first, first + 1}) rows[i].push_back({j, 0.5});
  }
  const auto schedule = make_schedule(weighted_topology(std::move(rows)), {}, "");
  REQUIRE(schedule.ok());
  CHECK(rounds_to_exact(**schedule) == Round{3});
}

TEST_CASE("round gaps: what one round alone contracts") {
  const Convergence exponential = convergence_of(network("one_peer_exponential", 12));
  REQUIRE(exponential.round_gaps.size() == 4);
  CHECK(exponential.round_gaps[0] ==
        doctest::Approx(1 - std::cos(std::acos(-1.0) / 12)).epsilon(1e-12));
  CHECK(exponential.round_gaps[1] == doctest::Approx(0).epsilon(1e-12));
  for (const double gap : convergence_of(network("base", 12)).round_gaps) CHECK(gap == 0);
  CHECK(convergence_of(network("ring", 9)).round_gaps == std::vector{network("ring", 9).gap()});
  CHECK(convergence_of(network("random_matching", 9)).round_gaps.empty());
}

// The definition: V = W (γ V + I) Wᵀ, solved by its series.
TEST_CASE(
    "effective neighbours are what Definition A says, and the simulation of large networks "
    "agrees") {
  const auto by_series = [](const MixingSchedule& schedule, double decay) {
    const int n = schedule.peers();
    Eigen::MatrixXd v = Eigen::MatrixXd::Zero(n, n);
    double sum = 0;
    const int settling = 400 * schedule.period();
    for (int t = 0; t < settling + schedule.period(); ++t) {
      const Eigen::MatrixXd w = dense(*schedule.at(static_cast<Round>(t)));
      v = (w * (decay * v + Eigen::MatrixXd::Identity(n, n)) * w.transpose()).eval();
      if (t >= settling) sum += v.trace() / n;
    }
    return schedule.period() / (1 - decay) / sum;
  };
  bool sampled = true;
  for (const auto& [kind, n] : {std::pair("ring", 11),
                                {"path", 12},
                                {"star", 9},
                                {"exponential", 12},
                                {"base", 11},
                                {"one_peer_exponential", 10},
                                {"dumbbell", 10},
                                {"complete", 7},
                                {"torus", 12}})
    for (const double decay : {0.0, 0.5, 0.9}) {
      CAPTURE(kind);
      const auto schedule = network(kind, n).schedule();
      CHECK(effective_neighbours(*schedule, decay, sampled) ==
            doctest::Approx(by_series(*schedule, decay)).epsilon(1e-9));
      CHECK_FALSE(sampled);
    }
  for (const char* kind : {"path", "grid", "random_regular", "dumbbell", "binary_tree"}) {
    CAPTURE(kind);
    const auto schedule = network(kind, 300).schedule();
    REQUIRE(schedule->peers() > kDense);
    const Eigen::ArrayXd squares = whole_spectrum(*schedule->at(0)).array().square();
    const double variance = ((squares / (1 - 0.9 * squares)).sum() + 10) / 300;
    CHECK(effective_neighbours(*schedule, 0.9, sampled) ==
          doctest::Approx(10 / variance).epsilon(0.03));
    CHECK(sampled);
  }
  CHECK(effective_neighbours(*network("complete", 12).schedule(), 0.5, sampled) ==
        doctest::Approx(12));
  CHECK(effective_neighbours(*network("ring", 1).schedule(), 0.5, sampled) == doctest::Approx(1));
}

TEST_CASE(
    "rounds to a millionth are those that mixing the slowest mode takes; messages and bytes "
    "follow") {
  for (const char* kind : {"ring", "torus", "star", "random_regular", "hypercube"}) {
    CAPTURE(kind);
    const auto schedule = network(kind, 16).schedule();
    const Convergence convergence = convergence_of(network(kind, 16));
    Eigen::VectorXd x = slowest_mode(*schedule)->vector;
    Round rounds = 0;
    for (; x.norm() > kReduction * (1 + 1e-9); ++rounds) x = mixed(*schedule->at(rounds), x);
    CHECK(convergence.rounds_to_millionth == rounds);
    std::size_t edges = 0;
    for (int i = 0; i < 16; ++i) edges += schedule->at(0)->in_neighbours(i).size();
    CHECK(convergence.messages_to_millionth == static_cast<double>(rounds * edges));
    CHECK(convergence.bytes_to_millionth == 40 * convergence.messages_to_millionth);
  }
  CHECK(convergence_of(network("one_peer_exponential", 32)).rounds_to_millionth == Round{5});
  CHECK(convergence_of(network("one_peer_exponential", 32)).messages_to_millionth == 5 * 32);
  CHECK(convergence_of(network("base", 5)).messages_to_millionth == 4 + 4 + 4 + 4 + 4);
  CHECK(convergence_of(network("star", 1)).rounds_to_millionth == Round{0});
}
