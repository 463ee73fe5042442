// The gap is what mixing does: measured contraction, from the slowest eigenvector and from random
// rows.
#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <cmath>

#include "base/linear_algebra/dense.hpp"
#include "base/philox.hpp"
#include "tests/topology/test_util.hpp"
#include "topology/convergence.hpp"
#include "topology/graph.hpp"

using namespace gossamer;
using namespace gossamer::topology;
using namespace gossamer::topology::test;

namespace {

/// One round in the difference form, as peers do it: x_i + Σ_j W[i][j] (x_j − x_i).
Eigen::VectorXd mix(const MixingMatrix& w, const Eigen::VectorXd& x) {
  Eigen::VectorXd result = x;
  for (int i = 0; i < w.peers(); ++i)
    for (const auto& [peer, weight] : w.in_neighbours(i)) result(i) += weight * (x(peer) - x(i));
  return result;
}

double consensus_distance(const Eigen::VectorXd& x) {
  return std::sqrt((x.array() - x.mean()).square().mean());
}

Eigen::VectorXd random_vector(int n, std::uint64_t seed) {
  RandomStream random(seed, kNoPeer, Purpose::test);
  Eigen::VectorXd x(n);
  for (int i = 0; i < n; ++i) x(i) = random.next_normal();
  return x;
}

double general_radius(const Eigen::MatrixXd& matrix) {
  return eigenvalues(matrix).cwiseAbs().maxCoeff();
}

/// Random perfect matchings: in round t, peers that drew each other exchange. A sequence without
/// period.
class RandomMatchings final : public Topology {
 public:
  RandomMatchings(int peers, std::uint64_t seed) : peers_(peers), seed_(seed) {}
  int peers() const override { return peers_; }
  int period() const override { return 0; }
  Graph graph(Round t) const override {
    std::vector<std::uint32_t> order(static_cast<std::size_t>(peers_));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
    RandomStream(seed_, kNoPeer, Purpose::topology, t).shuffle(order);
    std::vector<Edge> edges;
    for (std::size_t i = 0; i + 1 < order.size(); i += 2)
      edges.push_back({static_cast<int>(order[i]), static_cast<int>(order[i + 1])});
    return undirected_graph(peers_, edges);
  }

 private:
  int peers_;
  std::uint64_t seed_;
};

/// Graphs by list, one a round.
class Listed final : public Topology {
 public:
  explicit Listed(std::vector<Graph> graphs) : graphs_(std::move(graphs)) {}
  int peers() const override { return graphs_.front().peers(); }
  int period() const override { return static_cast<int>(graphs_.size()); }
  Graph graph(Round t) const override { return graphs_[t % graphs_.size()]; }

 private:
  std::vector<Graph> graphs_;
};

Graph of_edges(int n, const std::vector<Edge>& edges) { return undirected_graph(n, edges); }

}  // namespace

TEST_CASE("from the slowest eigenvector, the measured contraction of one round is 1 − gap") {
  int tried = 0;
  for (const TopologyKind& kind : kinds::catalog())
    for (int n = 2; n <= 64; ++n)
      for (const WeightOptions& weights : weighings_of(kind.name, n)) {
        const auto schedule = network(kind.name, n).weighed(weights).try_schedule();
        if (!schedule.ok()) continue;
        const auto mode = slowest_mode(**schedule);
        if (!mode.ok()) continue;
        CAPTURE(kind.name);
        CAPTURE(n);
        CAPTURE(to_string(weights));
        const Eigen::VectorXd& x = mode->vector;
        CHECK(std::abs(x.norm() - 1) < 1e-12);
        CHECK(std::abs(x.mean()) < 1e-12);
        const Eigen::VectorXd after = mix(*(*schedule)->at(0), x);
        const double contraction = consensus_distance(after) / consensus_distance(x);
        CHECK(std::abs(contraction - (1 - spectral_gap(**schedule))) < 1e-9);
        CHECK((after - mode->eigenvalue * x).norm() < 1e-9);
        ++tried;
      }
  CHECK(tried > 1000);
}

TEST_CASE("no start contracts more slowly than the gap says, and the mean stays") {
  for (const TopologyKind& kind : kinds::catalog()) {
    if (kind.needs_values) continue;
    const auto schedule = network(kind.name, 16).schedule();
    if (schedule->period() != 1) continue;
    CAPTURE(kind.name);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Eigen::VectorXd x = random_vector(16, seed), after = mix(*schedule->at(0), x);
      CHECK(consensus_distance(after) <=
            (1 - spectral_gap(*schedule)) * consensus_distance(x) + 1e-12);
      CHECK(std::abs(after.mean() - x.mean()) < 1e-14);
    }
  }
}

TEST_CASE("over many periods, a time-varying schedule contracts by 1 − gap a round") {
  for (const int n : {3, 5, 6, 7, 12, 13, 24, 31, 48, 63}) {
    CAPTURE(n);
    const auto schedule = network("one_peer_exponential", n).schedule();
    const int periods = 40;
    Eigen::VectorXd x = random_vector(n, 1);
    double log_contraction = 0;
    for (int t = 0; t < periods * schedule->period(); ++t) {
      const Eigen::VectorXd after = mix(*schedule->at(static_cast<Round>(t)), x);
      log_contraction += std::log(consensus_distance(after) / consensus_distance(x));
      x = (after.array() - after.mean()).matrix().normalized();
    }
    // The start's share of faster modes, a constant, is spread over all rounds.
    const double measured = std::exp(log_contraction / (periods * schedule->period()));
    CHECK(measured == doctest::Approx(1 - spectral_gap(*schedule)).epsilon(0.03));
  }
}

TEST_CASE("the slowest mode is refused in words where there is none") {
  CHECK(slowest_mode(*network("ring", 1).schedule()).error().message.find("one peer") !=
        std::string::npos);
  CHECK(slowest_mode(*network("one_peer_exponential", 8).schedule())
            .error()
            .message.find("static symmetric") != std::string::npos);
}

TEST_CASE("spectral radius: against a general eigensolver, and where that is at its worst") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const int n = 1 + static_cast<int>(seed);
    const Eigen::VectorXd values = random_vector(n * n, seed);
    const Eigen::MatrixXd matrix = values.reshaped(n, n);
    CHECK(spectral_radius(matrix) == doctest::Approx(general_radius(matrix)).epsilon(1e-11));
    CHECK(spectral_radius(matrix * 1e-120) ==
          doctest::Approx(general_radius(matrix) * 1e-120).epsilon(1e-11));
  }
  CHECK(spectral_radius(Eigen::MatrixXd::Zero(3, 3)) == 0);
  Eigen::MatrixXd nilpotent = Eigen::MatrixXd::Zero(9, 9);
  for (int i = 0; i + 1 < 9; ++i) nilpotent(i, i + 1) = 1;
  CHECK(spectral_radius(nilpotent) == 0);
  Eigen::MatrixXd jordan = nilpotent;
  jordan.diagonal().setConstant(0.5);  // an eigensolver finds 0.5 + 1e-16^{1/9}
  CHECK(spectral_radius(jordan) == doctest::Approx(0.5).epsilon(1e-6));
  Eigen::MatrixXd rotation(2, 2);
  rotation << 0, -0.3, 0.3, 0;
  CHECK(spectral_radius(rotation) == doctest::Approx(0.3).epsilon(1e-13));
}

TEST_CASE("a static directed schedule has the gap of its eigenvalues") {
  Graph graph{std::vector<std::vector<int>>(
      11)};  // the out-neighbours of each are the next and the one three further
  for (int i = 0; i < 11; ++i)
    graph.out[static_cast<std::size_t>(i)] = {(i + 1) % 11, (i + 4) % 11};
  for (auto& out : graph.out) std::sort(out.begin(), out.end());
  const auto schedule = make_schedule(std::make_unique<Listed>(std::vector{graph}), {}, "");
  REQUIRE(schedule.ok());
  const Eigen::MatrixXd rest =
      dense(*(*schedule)->at(0)) - Eigen::MatrixXd::Constant(11, 11, 1.0 / 11);
  CHECK(spectral_gap(**schedule) == doctest::Approx(1 - general_radius(rest)).epsilon(1e-12));
}

// The complete bipartite graph of 4 and 4, weights 1/5: eigenvalues 1, 1/5 and −3/5.
TEST_CASE("the slowest mode may be the one that flips its sign every round") {
  std::vector<Edge> edges;
  for (int i = 0; i < 4; ++i)
    for (int j = 4; j < 8; ++j) edges.push_back({i, j});
  const auto schedule =
      make_schedule(std::make_unique<Listed>(std::vector{of_edges(8, edges)}), {}, "");
  REQUIRE(schedule.ok());
  CHECK(spectral_gap(**schedule) == doctest::Approx(0.4).epsilon(1e-12));
  const auto mode = slowest_mode(**schedule);
  REQUIRE(mode.ok());
  CHECK(mode->eigenvalue == doctest::Approx(-0.6).epsilon(1e-12));
  CHECK((mix(*(*schedule)->at(0), mode->vector) + 0.6 * mode->vector).norm() < 1e-12);
}

TEST_CASE(
    "rounds that are torn alone and whole together make a schedule; those that stay torn do not") {
  const Graph pairs = of_edges(4, {{0, 1}, {2, 3}}), across = of_edges(4, {{0, 3}, {1, 2}});
  const auto whole = make_schedule(std::make_unique<Listed>(std::vector{pairs, across}), {}, "");
  REQUIRE(whole.ok());
  CHECK(spectral_gap(**whole) == 1);  // pairs, then across: exactly the average
  const auto torn = make_schedule(std::make_unique<Listed>(std::vector{pairs, pairs}), {}, "");
  REQUIRE_FALSE(torn.ok());
  CHECK(torn.error().message.find("joint connectivity") != std::string::npos);
  const Graph alone{{{}, {}}};
  CHECK_FALSE(make_schedule(std::make_unique<Listed>(std::vector{alone}), {}, "").ok());
}

TEST_CASE(
    "rounding is not mistaken for a spectrum: averaging over 3 × 3 × 3 in three rounds has gap 1") {
  std::vector<Graph> graphs;
  for (const int stride :
       {1, 3, 9}) {  // triangles along one of three directions; weights 1/3 are not exact in binary
    std::vector<Edge> edges;
    for (int i = 0; i < 27; ++i)
      for (int j = i + 1; j < 27; ++j)
        if (j - i < 3 * stride && (j - i) % stride == 0 && i / (3 * stride) == j / (3 * stride))
          edges.push_back({i, j});
    graphs.push_back(undirected_graph(27, edges));
  }
  const auto schedule = make_schedule(std::make_unique<Listed>(graphs), {}, "");
  REQUIRE(schedule.ok());
  CHECK(spectral_gap(**schedule) == 1);
}

TEST_CASE(
    "a random sequence without period: checked, the same at every asking, its rate expected") {
  const auto make = [](int n, std::uint64_t seed) {
    const std::string identity = "random matchings, seed " + std::to_string(seed);
    auto result = make_schedule(std::make_unique<RandomMatchings>(n, seed), {}, identity);
    REQUIRE_MESSAGE(result.ok(), result.error().message);
    return std::move(result).value();
  };
  const auto schedule = make(16, 1);
  CHECK(schedule->period() == 0);
  CHECK(dense(*schedule->at(123456)) == dense(*make(16, 1)->at(123456)));
  CHECK(schedule->hash() == make(16, 1)->hash());
  CHECK(schedule->hash() != make(16, 2)->hash());
  CHECK(schedule->hash() != make(18, 1)->hash());
  // A matching halves the squared distance, nearly: E‖x⁺‖² = (1 − n/(2(n − 1)))‖x‖². With 4 and 8
  // peers some seeds reach the exact average, which is no property of the sequence.
  CHECK(spectral_gap(*schedule) == doctest::Approx(1 - std::sqrt(1 - 16.0 / 30)).epsilon(1e-12));
  for (const int n : {4, 8})
    for (const std::uint64_t seed : {0U, 1U, 2U}) {
      const auto few = make(n, seed);
      CHECK(spectral_gap(*few) ==
            doctest::Approx(1 - std::sqrt((n - 2) / (2.0 * (n - 1)))).epsilon(1e-12));
      CHECK_FALSE(rounds_to_exact(*few).has_value());
    }
  CHECK(rounds_to_exact(*make(2, 0)) == std::optional<Round>(1));
  // The mean over many rounds of one start, and the effective neighbours by simulation.
  double ratios = 0, squares = 0;
  Eigen::VectorXd z = Eigen::VectorXd::Zero(16);
  constexpr Round kRounds = 20'000;
  for (Round t = 0; t < kRounds; ++t) {
    const auto w = dense(*schedule->at(t));
    Eigen::VectorXd x = Eigen::VectorXd::Unit(16, static_cast<int>(t % 16));
    x.array() -= x.mean();
    ratios += (w * x).squaredNorm() / x.squaredNorm();
    for (int i = 0; i < 16; ++i)
      z(i) = std::sqrt(0.9) * z(i) +
             ((t * 16 + static_cast<Round>(i)) * 2654435761U >> 16 & 1 ? 1 : -1);
    z = w * z;
    z.array() -= z.mean();
    if (t > 100) squares += z.squaredNorm();
  }
  CHECK(ratios / kRounds == doctest::Approx(mean_square_factor(*schedule)).epsilon(0.02));
  bool sampled = true;
  const double variance = (squares / (kRounds - 101) + 10) / 16;
  CHECK(effective_neighbours(*schedule, 0.9, sampled) ==
        doctest::Approx(10 / variance).epsilon(0.05));
  CHECK_FALSE(sampled);
  ScheduleRequest named;
  named.kind = "random matchings";
  const auto report = examine(*schedule, named, 10);
  REQUIRE(report.ok());
  CHECK(report->spectral_gap_expected);
  CHECK(report->period == 0);
  CHECK(report->degree_max == 1);
  CHECK(report->edges == 16 * 15 / 2);
  CHECK(report->bytes_per_round_per_peer == 40);
}
