// Push-sum, RelaySGD, DiLoCo and NoLoCo against their papers' iterations in double, on functions
// that differ between peers.
#include <algorithm>
#include <map>

#include "tests/gossip/test_network.hpp"
#include "topology/building.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

using Matrix = std::vector<std::vector<double>>;

constexpr std::size_t kReferenceLength = 7;
constexpr double kReferenceRate = 0.1;

/// x_i as the algorithm's rows are at the start.
Matrix start_of(const Network& network) {
  Matrix x;
  for (const auto& row : network.start) x.emplace_back(row.begin(), row.end());
  return x;
}

/// PullTrainer's f_i = ½ ‖x − b_i‖².
class Functions {
 public:
  explicit Functions(const PullTrainer& trainer) : trainer_(trainer) {}
  std::vector<double> gradient(int i, const std::vector<double>& x) const {
    std::vector<double> g = x;
    for (std::size_t k = 0; k < g.size(); ++k) g[k] -= trainer_.target(i)[k];
    return g;
  }
  void step(int i, std::vector<double>& x, int steps) const {
    for (int s = 0; s < steps; ++s) {
      const auto g = gradient(i, x);
      for (std::size_t k = 0; k < x.size(); ++k) x[k] -= kReferenceRate * g[k];
    }
  }

 private:
  const PullTrainer& trainer_;
};

/// W as the paper of push-sum has it: W[i][j] = 1/(1 + out-degree of j) where i is an out-neighbour
/// of j, or j itself.
Matrix push_matrix(const topology::Graph& graph) {
  const auto n = graph.out.size();
  Matrix w(n, std::vector<double>(n));
  for (std::size_t j = 0; j < n; ++j) {
    const double share = 1.0 / static_cast<double>(1 + graph.out[j].size());
    w[j][j] = share;
    for (const int i : graph.out[j]) w[static_cast<std::size_t>(i)][j] = share;
  }
  return w;
}

Matrix product(const Matrix& w, const Matrix& x) {
  Matrix result(w.size(), std::vector<double>(x.front().size()));
  for (std::size_t i = 0; i < w.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j)
      for (std::size_t k = 0; k < x[j].size(); ++k) result[i][k] += w[i][j] * x[j][k];
  return result;
}

/// A circle with two more edges: strongly connected, and peer 0 has three out-neighbours and one
/// in-neighbour.
topology::Graph uneven_graph() { return {{{1, 2, 4}, {2}, {3}, {0, 4}, {5}, {0}}}; }

std::unique_ptr<topology::MixingSchedule> pushed(const topology::Graph& graph, bool lazy = false) {
  auto made = topology::make_schedule(topology::static_topology(graph),
                                      {.weights = "out_degree", .lazy = lazy}, "");
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message));
  return std::move(made).value();
}

}  // namespace

TEST_CASE("push-sum is its paper's iteration, one local step and several") {
  const topology::Graph graph = uneven_graph();
  const Matrix w = push_matrix(graph);
  for (const int steps : {1, 3}) {
    PullTrainer trainer(6, kReferenceLength, static_cast<float>(kReferenceRate));
    const Functions functions(trainer);
    Network network(pushed(graph), kReferenceLength);
    Matrix x = start_of(network), z = x, weight(6, {1.0});
    for (Round t = 1; t <= 40; ++t) {
      for (int i = 0; i < 6; ++i)
        for (int s = 0; s < steps; ++s) {
          auto& mine = x[static_cast<std::size_t>(i)];
          const auto g = functions.gradient(i, z[static_cast<std::size_t>(i)]);
          for (std::size_t k = 0; k < kReferenceLength; ++k) {
            mine[k] -= kReferenceRate * g[k];
            z[static_cast<std::size_t>(i)][k] = mine[k] / weight[static_cast<std::size_t>(i)][0];
          }
        }
      x = product(w, x), weight = product(w, weight);
      for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t k = 0; k < kReferenceLength; ++k) z[i][k] = x[i][k] / weight[i][0];
      if (t > 3 && t != 40) continue;
      CAPTURE(t);
      network.run("push_sum", {{"local_steps", std::int64_t{steps}}}, t, &trainer);
      CHECK(largest_difference(network.rows, z) < 3e-6);
      for (std::size_t i = 0; i < 6; ++i)
        CHECK(network.every_row[1][i][kReferenceLength] ==
              doctest::Approx(weight[i][0]).epsilon(1e-6));
    }
  }
}

TEST_CASE(
    "push-sum agrees on the true mean where mixing alone agrees on another, and keeps its sums") {
  for (const bool lazy : {false, true}) {
    PullTrainer still(6, kReferenceLength, 0.0F);
    Network network(pushed(uneven_graph(), lazy), kReferenceLength);
    const auto sums_of = [](const std::vector<std::vector<float>>& rows) {
      std::vector<double> sums(kReferenceLength + 1);
      for (const auto& row : rows)
        for (std::size_t k = 0; k < row.size(); ++k) sums[k] += row[k];
      return sums;
    };
    std::vector<double> sums = sums_of(network.start);
    sums[kReferenceLength] = 6;
    network.run("push_sum", {}, 300, &still);
    const auto kept = sums_of(network.every_row[1]);
    for (std::size_t k = 0; k <= kReferenceLength; ++k)
      CHECK(kept[k] == doctest::Approx(sums[k]).epsilon(1e-5).scale(1));
    double apart = 0;
    for (std::size_t k = 0; k < kReferenceLength; ++k)
      for (std::size_t i = 0; i < 6; ++i) {
        CHECK(network.rows[i][k] == doctest::Approx(sums[k] / 6).epsilon(1e-5).scale(1));
        apart = std::max(apart, std::abs(network.every_row[1][i][k] - sums[k] / 6));
      }
    CHECK(apart > 0.1);  // the sums themselves have settled elsewhere
  }
}

TEST_CASE(
    "push-sum on a large star, whose centre holds a third of all there is: the mean stays for "
    "thousands of rounds") {
  PullTrainer still(50, kReferenceLength, 0.0F);
  Network network("star", 50, kReferenceLength, {}, {.weights = "out_degree"});
  std::vector<double> mean(kReferenceLength);
  for (const auto& row : network.start)
    for (std::size_t k = 0; k < kReferenceLength; ++k) mean[k] += row[k] / 50.0;
  network.run("push_sum", {}, 5000, &still);
  CHECK(largest_difference(network.rows, Matrix(50, mean)) < 2e-6);
  // A leaf's weight settles where w = w/2 + c/50, c the centre's.
  CHECK(network.every_row[1][0][kReferenceLength] ==
        doctest::Approx(50 / (1 + 49.0 / 25)).epsilon(1e-4));
}

TEST_CASE(
    "push-sum where a peer has no in-neighbour in some rounds: what it gave is missing from its "
    "own") {
  // Round by round one edge of 0 → 1 → 2 → 0.
  class InTurn final : public topology::Topology {
   public:
    int peers() const override { return 3; }
    int period() const override { return 3; }
    topology::Graph graph(Round t) const override {
      topology::Graph graph{std::vector<std::vector<int>>(3)};
      graph.out[t % 3] = {static_cast<int>((t + 1) % 3)};
      return graph;
    }
  };
  auto made = topology::make_schedule(std::make_unique<InTurn>(), {.weights = "out_degree"}, "");
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message));
  PullTrainer still(3, kReferenceLength, 0.0F);
  Network network(std::move(made).value(), kReferenceLength);
  Matrix x = start_of(network);
  for (auto& row : x) row.push_back(1);
  for (Round t = 0; t < 5; ++t) x = product(push_matrix(InTurn().graph(t)), x);
  network.run("push_sum", {}, 5, &still);
  CHECK(largest_difference(network.every_row[1], x) < 1e-6);
}

TEST_CASE("push-sum on a W whose rows sum to 1 is D-PSGD, bit by bit") {
  for (const char* graph : {"ring", "one_peer_exponential", "random_matching"}) {
    CAPTURE(graph);
    PullTrainer trainer(8, kReferenceLength, static_cast<float>(kReferenceRate));
    Network push(graph, 8, kReferenceLength, {}, {.weights = "out_degree"}),
        gossip(graph, 8, kReferenceLength);
    CHECK(push.run("push_sum", {}, 20, &trainer).rows ==
          gossip.run("dpsgd", {}, 20, &trainer).rows);
  }
}

TEST_CASE("RelaySGD is its paper's algorithm, with counters that travel") {
  for (const char* graph : {"path", "star", "binary_tree"}) {
    CAPTURE(graph);
    const int n = 7;
    PullTrainer trainer(n, kReferenceLength, static_cast<float>(kReferenceRate));
    const Functions functions(trainer);
    Network network(graph, n, kReferenceLength);
    const auto tree = network.matrices().at(0);
    Matrix x = start_of(network);
    std::map<std::pair<int, int>, std::vector<double>> messages;
    std::map<std::pair<int, int>, int> counts;
    for (int i = 0; i < n; ++i)
      for (const int j : tree->out_neighbours(i))
        messages[{i, j}] = std::vector<double>(kReferenceLength), counts[{i, j}] = 0;
    for (Round t = 1; t <= 30; ++t) {
      auto next = messages;
      auto next_counts = counts;
      for (int i = 0; i < n; ++i) {
        functions.step(i, x[static_cast<std::size_t>(i)], 2);
        for (const int j : tree->out_neighbours(i)) {
          next[{i, j}] = x[static_cast<std::size_t>(i)], next_counts[{i, j}] = 1;
          for (const int other : tree->out_neighbours(i)) {
            if (other == j) continue;
            for (std::size_t k = 0; k < kReferenceLength; ++k)
              next[{i, j}][k] += messages[{other, i}][k];
            next_counts[{i, j}] += counts[{other, i}];
          }
        }
      }
      messages = next, counts = next_counts;
      for (int i = 0; i < n; ++i) {
        int models = 1;
        for (const int j : tree->out_neighbours(i)) models += counts[{j, i}];
        for (std::size_t k = 0; k < kReferenceLength; ++k) {
          for (const int j : tree->out_neighbours(i))
            x[static_cast<std::size_t>(i)][k] += messages[{j, i}][k];
          x[static_cast<std::size_t>(i)][k] /= models;
        }
      }
      if (t > 7 && t != 30) continue;
      CAPTURE(t);
      network.run("relay_sgd", {{"local_steps", std::int64_t{2}}}, t, &trainer);
      CHECK(largest_difference(network.rows, x) < 3e-6);
    }
  }
}

TEST_CASE("DiLoCo is its paper's algorithm with the Nesterov step of the usual libraries") {
  const int n = 5;
  const double rate = 0.6, momentum = 0.8;
  PullTrainer trainer(n, kReferenceLength, static_cast<float>(kReferenceRate));
  const Functions functions(trainer);
  Network network("complete", n, kReferenceLength);
  std::fill(network.start.begin(), network.start.end(), network.start.front());
  std::vector<double> phi = start_of(network).front(), v(kReferenceLength);
  for (Round t = 1; t <= 30; ++t) {
    std::vector<double> outer(kReferenceLength);
    for (int i = 0; i < n; ++i) {
      std::vector<double> theta = phi;
      functions.step(i, theta, 4);
      for (std::size_t k = 0; k < kReferenceLength; ++k) outer[k] += (phi[k] - theta[k]) / n;
    }
    for (std::size_t k = 0; k < kReferenceLength; ++k) {
      v[k] = momentum * v[k] + outer[k];
      phi[k] -= rate * (outer[k] + momentum * v[k]);
    }
    if (t > 3 && t != 30) continue;
    CAPTURE(t);
    network.run(
        "diloco",
        {{"local_steps", std::int64_t{4}}, {"outer_rate", rate}, {"outer_momentum", momentum}}, t,
        &trainer);
    CHECK(largest_difference(network.rows, Matrix(static_cast<std::size_t>(n), phi)) < 3e-6);
  }
}

TEST_CASE(
    "NoLoCo is its paper's outer step on the pairs of each round, a peer that is left over "
    "included") {
  for (const double pull : {0.7, 0.9}) {
    const int n = 5;
    const double rate = 0.7, momentum = 0.5;
    PullTrainer trainer(n, kReferenceLength, static_cast<float>(kReferenceRate));
    const Functions functions(trainer);
    Network network("random_matching", n, kReferenceLength);
    Matrix phi = start_of(network),
           delta(static_cast<std::size_t>(n), std::vector<double>(kReferenceLength));
    for (Round t = 1; t <= 30; ++t) {
      Matrix theta = phi;
      for (int i = 0; i < n; ++i) functions.step(i, theta[static_cast<std::size_t>(i)], 4);
      const auto w = network.matrices().at(t - 1);
      const Matrix before = phi;
      for (int i = 0; i < n; ++i) {
        const auto me = static_cast<std::size_t>(i);
        const std::size_t other = w->in_neighbours(i).empty()
                                      ? me
                                      : static_cast<std::size_t>(w->in_neighbours(i)[0].peer);
        for (std::size_t k = 0; k < kReferenceLength; ++k) {
          const double way =
              (theta[me][k] - before[me][k] + theta[other][k] - before[other][k]) / 2;
          const double apart = before[me][k] - (before[me][k] + before[other][k]) / 2;
          delta[me][k] = momentum * delta[me][k] + rate * way - pull * apart;
          phi[me][k] += delta[me][k];
        }
      }
      if (t > 3 && t != 30) continue;
      CAPTURE(t);
      network.run("noloco",
                  {{"local_steps", std::int64_t{4}},
                   {"outer_rate", rate},
                   {"outer_momentum", momentum},
                   {"pull", pull}},
                  t, &trainer);
      CHECK(largest_difference(network.rows, phi) < 3e-6);
    }
  }
}

TEST_CASE("peers that agree and have nothing to learn stay exactly where they are") {
  struct Case {
    const char *algorithm, *graph;
  };
  for (const auto& [algorithm, graph] :
       {Case{"diloco", "complete"}, {"noloco", "random_matching"}, {"push_sum", "star"}}) {
    CAPTURE(algorithm);
    PullTrainer still(6, kReferenceLength, 0.0F);
    Network network(graph, 6, kReferenceLength);
    std::fill(network.start.begin(), network.start.end(), network.start.front());
    CHECK(network.run(algorithm, {}, 10, &still).rows == network.start);
  }
}
