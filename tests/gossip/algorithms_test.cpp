// Every algorithm of the catalog, and what the first ones must give.
#include <algorithm>

#include "tests/gossip/test_network.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    largest = std::max(largest, std::abs(static_cast<double>(a[k]) - b[k]));
  return largest;
}

ParameterValues small_rows(const AlgorithmKind& kind, std::size_t length) {
  for (const ParameterSpec& spec : kind.parameters)
    if (spec.name == "length") return {{"length", static_cast<std::int64_t>(length)}};
  return {};
}

/// A topology of six peers that the algorithm may run on.
const char* fitting(const Algorithm& algorithm) {
  for (const char* kind : {"ring", "path", "complete", "random_matching"})
    if (algorithm.check(*schedule(kind, 6)).ok()) return kind;
  FAIL("none of these topologies fits");
  return "";
}

/// The error of check() for an algorithm on a topology; "" if it may run.
std::string refusal(const std::string& algorithm, const topology::MixingSchedule& schedule) {
  auto made = make_algorithm(algorithm, {});
  REQUIRE(made.ok());
  const Status status = (*made)->check(schedule);
  if (status.ok()) return "";
  CHECK(status.error().kind == ErrorKind::invalid);
  return status.error().message;
}

}  // namespace

TEST_CASE(
    "every algorithm: declared whole, and the same bits when each round starts from what is "
    "declared") {
  for (const AlgorithmKind& kind : algorithms::catalog()) {
    CAPTURE(kind.name);
    CHECK_FALSE(kind.summary.empty());
    const ParameterValues values = small_rows(kind, 37);
    auto made = kind.make(values);
    REQUIRE(made.ok());
    (*made)->set_model({.matrices = tensors_of(37)});
    const char* const graph = fitting(**made);
    const std::vector<RowSpec> rows = (*made)->rows(*schedule(graph, 6));
    REQUIRE_FALSE(rows.empty());
    CHECK(rows.front().name == "x");
    CHECK(rows.front().survives);
    CHECK(rows.front().extra == 0);
    CHECK_FALSE(kind.make({{"no_such_parameter", std::int64_t{1}}}).ok());

    PullTrainer trainer(6, 37, 0.1F);
    Network whole(graph, 6, 37), pieces(graph, 6, 37), chunked(graph, 6, 37, {.chunk_values = 5});
    whole.run(kind.name, values, 8, &trainer);
    CHECK(whole.fault == "");
    CHECK(whole.finished ==
          ((*made)->requirements().one_node ? 1 : 6 + (*made)->requirements().servers));
    // If a round's bits depend on the order of events, restarting it may change that order.
    const bool by_the_clock = kind.name == "ad_psgd";
    pieces.run_in_single_rounds(kind.name, values, 8, &trainer);
    CHECK(pieces.finished == whole.finished);
    CHECK((by_the_clock || pieces.rows == whole.rows));
    CHECK(chunked.run(kind.name, values, 8, &trainer).rows == whole.rows);

    // It sends the volume that it declares.
    std::uint64_t predicted = 0;
    for (Round t = 0; t < 8; ++t) {
      const auto w = whole.matrices().at(t);
      const auto loads = (*made)->communication(whole.matrices(), *w, 37);
      for (int i = 0; i < whole.finished; ++i) predicted += values_sent(loads, i);
      for (const ExchangeVolume& load : loads) {  // and all of it is received
        std::uint64_t sent = 0, received = 0, longest = 0;
        for (int i = 0; i < whole.finished; ++i)
          sent += load.of(i).sent, received += load.of(i).received;
        for (int i = 0; i < whole.finished; ++i) longest = std::max(longest, load.of(i).sent);
        CHECK(sent == received);
        CHECK(load.message <= longest);
      }
    }
    const std::uint64_t words_at_parting =
        by_the_clock ? 2 * 6 : 0;      // one each way, on the edges of the ring
    if (kind.name == "teleportation")  // it declares the expectation
      CHECK(static_cast<double>(whole.values_sent) ==
            doctest::Approx(static_cast<double>(predicted)).epsilon(0.3));
    else CHECK(whole.values_sent == predicted + words_at_parting);
  }
}

TEST_CASE(
    "algorithms that require a kind of graph refuse others, and the error names one that fits") {
  const topology::WeightOptions lazy{.lazy = true};
  for (const char* tree : {"path", "star", "binary_tree"})
    CHECK(refusal("relay_sgd", *schedule(tree, 7)) == "");
  CHECK(refusal("relay_sgd", *schedule("ring", 2)) == "");
  CHECK(refusal("relay_sgd", *schedule("ring", 1)) == "");
  const std::string relay = "topology.kind: 'relay_sgd' relays along a tree, and this graph ";
  const std::string trees =
      "; choose path, star, binary_tree or a tree in a file, or an algorithm for any graph (dpsgd, "
      "gradient_tracking)";
  CHECK(refusal("relay_sgd", *schedule("ring", 5)) ==
        relay + "has 5 edges, where a tree of 5 peers has 4" + trees);
  CHECK(refusal("relay_sgd", *schedule("exponential", 5)) == relay + "is directed" + trees);
  CHECK(refusal("relay_sgd", *schedule("random_matching", 6)) ==
        relay + "changes from round to round" + trees);

  const std::string sums =
      "topology.kind: 'async_push_sum' keeps a sum for every link, and the links of this topology "
      "change from "
      "round to round; choose one that stays (ring, exponential, torus), or push_sum";
  for (const char* stays : {"ring", "exponential", "star"})
    CHECK(refusal("async_push_sum", *schedule(stays, 6)) == "");
  for (const char* changes : {"random_matching", "one_peer_exponential"})
    CHECK(refusal("async_push_sum", *schedule(changes, 6)) == sums);
  const auto pairs = [](const std::string& what) {
    return "topology.kind: 'ad_psgd' averages pairs of neighbours, and this graph " + what +
           "; choose an undirected one that stays "
           "(ring, torus, hypercube, random_regular), or async_push_sum for a directed one";
  };
  for (const char* undirected : {"ring", "complete", "star"})
    CHECK(refusal("ad_psgd", *schedule(undirected, 7)) == "");
  CHECK(refusal("ad_psgd", *schedule("exponential", 7)) == pairs("is directed"));
  CHECK(refusal("ad_psgd", *schedule("random_matching", 6)) ==
        pairs("changes from round to round"));

  CHECK(refusal("diloco", *schedule("complete", 6)) == "");
  CHECK(refusal("diloco", *schedule("complete", 6, {.weights = "uniform"})) == "");
  CHECK(refusal("diloco", *schedule("complete", 1)) == "");
  const std::string diloco =
      "topology.kind: 'diloco' takes the mean of all peers in every round, which this W does not "
      "give; "
      "choose complete with metropolis weights that are not lazy, or noloco on random_matching";
  CHECK(refusal("diloco", *schedule("ring", 6)) == diloco);
  CHECK(refusal("diloco", *schedule("complete", 6, lazy)) == diloco);
  CHECK(refusal("diloco", *schedule("one_peer_exponential", 8)) == diloco);

  CHECK(refusal("sparseloco", *schedule("complete", 6, lazy)) == "");
  for (const char* graph : {"ring", "one_peer_exponential"})
    CHECK(refusal("sparseloco", *schedule(graph, 8)) ==
          "topology.kind: 'sparseloco' adds the messages of all peers in every round; choose "
          "complete, or choco for any graph");

  for (int n : {1, 2, 5, 6}) CHECK(refusal("noloco", *schedule("random_matching", n)) == "");
  CHECK(refusal("noloco", *schedule("base", 8)) == "");
  const auto noloco = [](int round, int peer) {
    return "topology.kind: 'noloco' averages pairs, and in round " + std::to_string(round) +
           " of this topology peer " + std::to_string(peer) +
           " is in none that does; choose random_matching with weights that are not lazy, or an "
           "algorithm for any graph (dpsgd)";
  };
  CHECK(refusal("noloco", *schedule("star", 6)) == noloco(0, 0));
  CHECK(refusal("noloco", *schedule("random_matching", 6, lazy)) == noloco(0, 0));
  CHECK(refusal("noloco", *schedule("one_peer_exponential", 8)) == noloco(0, 0));
}

TEST_CASE("all-reduce, D-PSGD on the complete graph and the centralized run agree") {
  for (int n : {1, 2, 3, 8}) {
    for (std::size_t length :
         {std::size_t{1}, std::size_t{5}, std::size_t{100}, std::size_t{1000}}) {
      PullTrainer trainer(n, length, 0.2F);
      Network reduce("complete", n, length), gossip("complete", n, length),
          central("complete", n, length);
      for (Network* network : {&reduce, &gossip, &central})
        std::fill(network->start.begin(), network->start.end(), network->start.front());
      reduce.run("allreduce", {}, 50, &trainer);
      gossip.run("dpsgd", {}, 50, &trainer);
      central.run("centralized", {}, 50, &trainer);
      CHECK(reduce.finished == n);
      for (int i = 0; i < n; ++i) {
        CHECK(reduce.rows[static_cast<std::size_t>(i)] == reduce.rows.front());
        CHECK(largest_difference(reduce.rows[static_cast<std::size_t>(i)], central.rows.front()) <
              1e-5);
        CHECK(largest_difference(gossip.rows[static_cast<std::size_t>(i)], central.rows.front()) <
              1e-5);
      }
    }
  }
}

TEST_CASE("ring all-reduce sends 2(n−1)/n of a row, whatever the topology") {
  PullTrainer trainer(4, 6400, 0.1F);
  Network network("star", 4, 6400);
  network.run("allreduce", {}, 1, &trainer);
  for (std::uint64_t bytes : network.bytes_sent)
    CHECK(bytes == 6 * (1600 * sizeof(float) + kFrameOverheadBytes));
}

TEST_CASE("local steps: H steps a round are H steps") {
  PullTrainer trainer(1, 20, 0.1F);
  Network once("ring", 1, 20), thrice("ring", 1, 20);
  once.run("dpsgd", {}, 6, &trainer);
  thrice.run("dpsgd", {{"local_steps", std::int64_t{3}}}, 2, &trainer);
  CHECK(once.rows == thrice.rows);
}

TEST_CASE("adapt-while-communicate is x + γ-steps added to the mixed row") {
  // Rounds on two peers, by hand: x⁺ = mix(x) − γ (x − b).
  constexpr Round kRounds = 4;
  PullTrainer trainer(2, 3, 0.5F);
  Network network("path", 2, 3);
  network.run("dpsgd", {{"order", std::string("awc")}}, kRounds, &trainer);
  std::vector<std::vector<float>> rows = network.start;
  for (Round t = 0; t < kRounds; ++t) {
    const auto mixed = mixed_in_double(network.matrices(), rows, 1);
    for (int i = 0; i < 2; ++i) {
      const auto index = static_cast<std::size_t>(i);
      TrainRequest request;
      std::vector<float> x = rows[index], gradient(3);
      request.shard_of = i;
      request.step = t;
      request.x = x;
      request.gradient = gradient;
      TrainRequest* requests[] = {&request};
      trainer.run(TrainOperation::local_steps, requests);
      for (std::size_t k = 0; k < 3; ++k)
        rows[index][k] = static_cast<float>(mixed[index][k] + x[k] - rows[index][k]);
    }
  }
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t k = 0; k < 3; ++k)
      CHECK(network.rows[i][k] == doctest::Approx(rows[i][k]).epsilon(1e-5));
}

namespace {

/// sqrt( (1/n) Σ_i ‖x_i − x*‖² ) / ‖x*‖ after `rounds`.
double distance_after(const std::string& kind, const ParameterValues& values,
                      const std::string& graph, int n, Round rounds, float rate,
                      const topology::WeightOptions& weights = {}) {
  constexpr std::size_t kLength = 20;
  PullTrainer trainer(n, kLength, rate);
  Network network(graph, n, kLength, {}, weights);
  network.run(kind, values, rounds, &trainer);
  REQUIRE(network.fault == "");
  const std::vector<double> optimum = trainer.optimum();
  double sum = 0, square = 0;
  for (std::size_t k = 0; k < kLength; ++k) {
    square += optimum[k] * optimum[k];
    for (const auto& row : network.rows) sum += (row[k] - optimum[k]) * (row[k] - optimum[k]) / n;
  }
  return std::sqrt(sum / square);
}

}  // namespace

TEST_CASE(
    "tracking, D² and EXTRA reach the optimum of data that differ; D-PSGD stalls at its bias") {
  const topology::WeightOptions lazy{.lazy = true};
  for (const char* graph : {"ring", "star", "torus"}) {
    CAPTURE(graph);
    CHECK(distance_after("dpsgd", {}, graph, 16, 1500, 0.1F) > 0.05);
    CHECK(distance_after("gradient_tracking", {}, graph, 16, 1500, 0.1F) < 1e-5);
    CHECK(distance_after("gradient_tracking", {{"order", std::string("awc")}}, graph, 16, 1500,
                         0.02F) < 1e-3);
    CHECK(distance_after("d2", {}, graph, 16, 1500, 0.1F, lazy) < 1e-4);
    CHECK(distance_after("extra", {}, graph, 16, 1500, 0.1F) < 1e-4);
  }
}

TEST_CASE(
    "quasi-global momentum: by hand on one peer, and nearer to the optimum than local steps alone "
    "where data differ") {
  // One peer: m_{t+1} = μ m_t + (1 − μ)(g_t + μ m_t), x_{t+1} = x_t − γ (g_t + μ m_t).
  PullTrainer trainer(1, 4, 0.1F);
  Network network("ring", 1, 4);
  network.run("qg_momentum", {{"momentum", 0.5}}, 3, &trainer);
  const std::vector<double> target = trainer.optimum();
  for (std::size_t k = 0; k < 4; ++k) {
    double x = network.start[0][k], m = 0;
    for (int t = 0; t < 3; ++t) {
      const double direction = x - target[k] + 0.5 * m;
      x -= 0.1 * direction;
      m = 0.5 * m + 0.5 * direction;
    }
    CHECK(network.rows[0][k] == doctest::Approx(x).epsilon(1e-5));
  }
  CHECK(distance_after("qg_momentum", {}, "ring", 8, 400, 0.01F) <
        1.2 * distance_after("dpsgd", {}, "ring", 8, 400, 0.01F));
}

TEST_CASE(
    "DmSGD and DecentLaM: momentum SGD on one peer; with data that differ, DecentLaM ends where "
    "D-PSGD does") {
  for (const char* kind : {"dmsgd", "decentlam"}) {
    PullTrainer trainer(1, 4, 0.1F);
    Network network("ring", 1, 4);
    network.run(kind, {{"momentum", 0.5}}, 3, &trainer);
    const std::vector<double> target = trainer.optimum();
    for (std::size_t k = 0; k < 4; ++k) {
      double x = network.start[0][k], m = 0;
      for (int t = 0; t < 3; ++t) {
        m = 0.5 * m + x - target[k];
        x -= 0.1 * m;
      }
      CHECK(network.rows[0][k] == doctest::Approx(x).epsilon(1e-5));
    }
  }
  const ParameterValues momentum{{"momentum", 0.8}};
  const double plain = distance_after("dpsgd", {}, "ring", 8, 2000, 0.02F);
  CHECK(distance_after("decentlam", momentum, "ring", 8, 2000, 0.02F) ==
        doctest::Approx(plain).epsilon(1e-4));
  CHECK(distance_after("dmsgd", momentum, "ring", 8, 2000, 0.02F) > 1.5 * plain);
}

TEST_CASE(
    "push-pull reaches the optimum with a W whose rows do not sum to 1, and is gradient tracking "
    "where they do") {
  const topology::WeightOptions columns{.weights = "out_degree"};
  for (const char* graph : {"star", "dumbbell", "path"}) {
    CAPTURE(graph);
    REQUIRE_FALSE(schedule(graph, 8, columns)->at(0)->doubly_stochastic());
    CHECK(distance_after("push_pull", {}, graph, 8, 3000, 0.02F, columns) < 1e-5);
    // Peers that agree and have nothing to learn stay exactly where they are.
    PullTrainer still(8, 20, 0.0F);
    Network network(graph, 8, 20, {}, columns);
    std::fill(network.start.begin(), network.start.end(), network.start.front());
    CHECK(network.run("push_pull", {}, 10, &still).rows == network.start);
  }
  for (const char* graph : {"torus", "exponential", "one_peer_exponential"}) {
    CAPTURE(graph);
    PullTrainer trainer(9, 20, 0.05F);
    Network pushes(graph, 9, 20), tracks(graph, 9, 20);
    CHECK(pushes.run("push_pull", {}, 50, &trainer).rows ==
          tracks.run("gradient_tracking", {}, 50, &trainer).rows);
  }
}

TEST_CASE("an unknown algorithm is refused with the list") {
  auto made = make_algorithm("dpgsd", {});
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().message ==
        "algorithm.kind: unknown algorithm 'dpgsd'; there are: ad_psgd, allreduce, async_push_sum, "
        "async_server, centralized, choco, "
        "consensus, d2, decentlam, diloco, dmsgd, dpsgd, extra, fedavg, gradient_tracking, noloco, "
        "power_gossip, push_pull, push_sum, "
        "qg_momentum, "
        "relay_sgd, server, sparseloco, teleportation");
}
