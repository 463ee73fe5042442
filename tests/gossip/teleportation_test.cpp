// Teleportation: what it sends, and that its models meet at the optimum of all peers.
#include <cmath>
#include <set>

#include "tests/gossip/test_network.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

const ParameterValues kTwo{{"active", std::int64_t{2}}, {"graph", std::string("complete")}};

}  // namespace

TEST_CASE(
    "Teleportation: the peers that hold models are drawn anew, and are as many in each round") {
  const auto algorithm = make_algorithm("teleportation", kTwo).value();
  const auto graph = schedule("ring", 7);
  std::set<std::vector<int>> sets;
  std::vector<int> rounds_of(7);
  for (Round t = 0; t < 300; ++t) {
    std::vector<int> holders;
    for (int i = 0; i < 7; ++i)
      if (algorithm->holds_model(i, t, *graph, kSeed)) holders.push_back(i);
    CHECK(holders.size() == 2);
    for (const int i : holders) ++rounds_of[static_cast<std::size_t>(i)];
    sets.insert(holders);
  }
  CHECK(sets.size() == 21);  // every pair
  for (const int rounds : rounds_of) CHECK(rounds == doctest::Approx(300.0 * 2 / 7).epsilon(0.3));
}

TEST_CASE("Teleportation: all peers end with a model near the optimum of all data, on any clock") {
  PullTrainer trainer(7, 20, 0.02F);
  for (const Time latency : {Time(0), Time(std::chrono::milliseconds(3))}) {
    NetworkOptions options;
    options.links.latency = latency;
    options.step_time = std::chrono::milliseconds(1);
    options.slow_peers = 1;
    options.slow_factor = 5;
    // Peers without a model wait for longer.
    options.row_limit = std::chrono::milliseconds(60);
    Network network("ring", 7, 20, options);
    // None goes ahead: the first round takes a step.
    network.watch = [](int, Round, Time now) { CHECK(now >= std::chrono::milliseconds(1)); };
    network.run("teleportation", kTwo, 3000, &trainer);
    CHECK(network.fault == "");
    CHECK(network.overdue.empty());
    CHECK(network.finished == 7);
    const std::vector<double> optimum = trainer.optimum();
    for (const auto& row : network.rows)
      for (std::size_t k = 0; k < optimum.size(); ++k) CHECK(std::abs(row[k] - optimum[k]) < 0.35);
    std::set<std::vector<float>> models(network.rows.begin(), network.rows.end());
    CHECK(models.size() <= 2);
  }
}

TEST_CASE("Teleportation with as many models as peers is D-PSGD with other data in each round") {
  PullTrainer still(6, 20, 0);
  Network network("ring", 6, 20);
  const auto start = network.start;
  network.run("teleportation", {{"active", std::int64_t{6}}}, 40, &still);
  for (std::size_t k = 0; k < 20; ++k) {
    double mean = 0;
    for (const auto& row : start) mean += static_cast<double>(row[k]) / 6;
    for (const auto& row : network.rows) CHECK(std::abs(row[k] - mean) < 1e-4);
  }
}

TEST_CASE("Teleportation refuses more models than peers") {
  const auto algorithm = make_algorithm("teleportation", {{"active", std::int64_t{9}}}).value();
  const Status status = algorithm->check(*schedule("ring", 8));
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message ==
        "algorithm.active: 9 of 8 peers cannot be active; choose at most 8");
}
