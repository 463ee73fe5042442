// Losses: the peers that continue, what is left of W, and what the sums over the peers are then.
#include <algorithm>

#include "gossip/membership/membership.hpp"
#include "tests/gossip/test_network.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kTestLength = 10;

/// A network in which peers die at given times: their links end on both sides, what is under way on
/// them with it.
struct Dying {
  std::map<int, Time> deaths = {};
  std::vector<NetworkOptions::Cut> cuts = {};
  std::map<int, Time> joins = {};
  std::vector<std::string> messages = {};

  NetworkOptions options(Policy policy = Policy::sync) {
    NetworkOptions options;
    options.policy = policy;
    options.step_time = 10ms;
    options.links = {2ms, 0};
    options.tolerates_peer_loss = true;
    options.deaths = deaths;
    options.cuts = cuts;
    options.joins = joins;
    options.message = [this](const std::string& line) { messages.push_back(line); };
    return options;
  }
};

/// The mean over the survivors of what they pull towards.
std::vector<double> optimum_of(const PullTrainer& trainer, const std::vector<int>& peers) {
  std::vector<double> mean(kTestLength);
  for (const int i : peers)
    for (std::size_t k = 0; k < kTestLength; ++k)
      mean[k] += trainer.target(i)[k] / static_cast<double>(peers.size());
  return mean;
}

/// (from, to, round) of what a run went without, but for what is still missing in its last rounds.
std::set<std::tuple<int, int, Round>> missing_in(const Network& network) {
  std::set<std::tuple<int, int, Round>> missing;
  for (const auto& deviation : network.deviations)
    if (deviation.missing) missing.insert({deviation.from, deviation.peer, deviation.round});
  return missing;
}

/// Rounds in which one end of an edge mixed and the other did not.
std::size_t one_sided(const std::set<std::tuple<int, int, Round>>& missing) {
  return static_cast<std::size_t>(std::ranges::count_if(missing, [&](const auto& entry) {
    const auto& [from, to, round] = entry;
    return !missing.contains({to, from, round});
  }));
}

/// The numbers between `before` and `after` in the lines that have both.
std::vector<Round> rounds_told(const std::vector<std::string>& lines, const std::string& before,
                               const std::string& after) {
  std::vector<Round> rounds;
  for (const std::string& line : lines)
    if (line.starts_with(before) && line.find(after) != std::string::npos)
      rounds.push_back(std::stoull(line.substr(before.size())));
  return rounds;
}

double distance_to_point(const std::vector<float>& row, const std::vector<double>& point) {
  double sum = 0;
  for (std::size_t k = 0; k < row.size(); ++k) sum += (row[k] - point[k]) * (row[k] - point[k]);
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("any one of eight peers dies, at any time: the others continue, under every policy") {
  for (const Policy policy : {Policy::sync, Policy::deadline, Policy::stale, Policy::async})
    for (int victim = 0; victim < 8; ++victim) {
      CAPTURE(static_cast<int>(policy));
      CAPTURE(victim);
      Dying dying{.deaths = {{victim, 100ms + 1ms * victim}}};
      PullTrainer trainer(8, kTestLength, 0.05F);
      Network network("ring", 8, kTestLength, dying.options(policy));
      network.run("dpsgd", {}, 60, &trainer);
      CHECK(network.fault == "");
      CHECK(network.finished == 7);
    }
}

TEST_CASE("tracked gradients, D² and EXTRA end at the survivors' optimum") {
  for (const char* algorithm : {"gradient_tracking", "d2", "extra"}) {
    CAPTURE(algorithm);
    Dying dying{.deaths = {{3, 305ms}, {6, 311ms}}};
    PullTrainer trainer(9, kTestLength, 0.05F);
    Network network("torus", 9, kTestLength, dying.options(), {.lazy = true});
    network.run(algorithm, {}, 1500, &trainer);
    CHECK(network.fault == "");
    CHECK(network.finished == 7);
    const std::vector<int> survivors{0, 1, 2, 4, 5, 7, 8};
    const auto optimum = optimum_of(trainer, survivors);
    for (const int i : survivors)
      CHECK(distance_to_point(network.rows[static_cast<std::size_t>(i)], optimum) < 1e-4);
  }
}

TEST_CASE(
    "what is left of a directed graph: tracked gradients and push-pull end at the survivors' "
    "optimum, push-sum at their mean") {
  const std::vector<int> survivors{0, 1, 3, 4, 5, 7};
  for (const char* order : {"atc", "awc"}) {
    CAPTURE(order);
    Dying dying{.deaths = {{2, 305ms}, {6, 511ms}}};
    PullTrainer trainer(8, kTestLength, 0.05F);
    Network network("exponential", 8, kTestLength, dying.options());
    network.run("gradient_tracking", {{"order", std::string(order)}}, 1500, &trainer);
    CHECK(network.fault == "");
    const auto optimum = optimum_of(trainer, survivors);
    for (const int i : survivors)
      CHECK(distance_to_point(network.rows[static_cast<std::size_t>(i)], optimum) < 1e-4);
  }
  for (const char* graph : {"exponential", "star"}) {  // the star's hub survives
    CAPTURE(graph);
    Dying dying{.deaths = {{2, 305ms}, {6, 511ms}}};
    PullTrainer trainer(8, kTestLength, 0.02F);
    Network network(graph, 8, kTestLength, dying.options(), {.weights = "out_degree"});
    network.run("push_pull", {}, 3000, &trainer);
    CHECK(network.fault == "");
    const auto optimum = optimum_of(trainer, survivors);
    for (const int i : survivors)
      CHECK(distance_to_point(network.rows[static_cast<std::size_t>(i)], optimum) < 1e-4);
  }
  // Without steps, models converge to the mean of the survivors' models at the reinitialisation.
  for (const char* weights : {"auto", "out_degree"}) {
    CAPTURE(weights);
    Dying dying{.deaths = {{2, 1ms}, {6, 1ms}}};
    PullTrainer still(8, kTestLength, 0);
    Network network("exponential", 8, kTestLength, dying.options(), {.weights = weights});
    network.run("push_sum", {}, 300, &still);
    CHECK(network.fault == "");
    std::vector<double> sum(kTestLength + 1);
    for (const int i : survivors)
      for (std::size_t k = 0; k <= kTestLength; ++k)
        sum[k] += network.every_row[1][static_cast<std::size_t>(i)][k];
    CHECK(sum[kTestLength] == doctest::Approx(6).epsilon(1e-5));
    for (const int i : survivors)
      for (std::size_t k = 0; k < kTestLength; ++k)
        CHECK(network.rows[static_cast<std::size_t>(i)][k] ==
              doctest::Approx(sum[k] / 6).epsilon(1e-4));
  }
}

TEST_CASE(
    "push-sum: the survivors' weights stay what they are worth, and their ratio ends at their "
    "optimum's neighbourhood") {
  Dying dying{.deaths = {{2, 205ms}}};
  PullTrainer trainer(7, kTestLength, 0.05F);
  Network network("exponential", 7, kTestLength, dying.options(), {.weights = "out_degree"});
  network.run("push_sum", {}, 600, &trainer);
  CHECK(network.fault == "");
  CHECK(network.finished == 6);
  double weights = 0;
  for (const int i : {0, 1, 3, 4, 5, 6})
    weights += network.every_row[1][static_cast<std::size_t>(i)][kTestLength];
  CHECK(weights == doctest::Approx(6).epsilon(1e-5));
}

TEST_CASE("what is left of W keeps the survivors' mean: replayed in double, to 1e-12") {
  Dying dying{.deaths = {{4, 203ms}}};
  PullTrainer still(8, kTestLength, 0.0F);
  Network network("hypercube", 8, kTestLength, dying.options());
  network.run("dpsgd", {}, 100, &still);
  std::map<std::tuple<int, Round, int>, std::uint64_t> missing;
  Round first = 100;
  for (const auto& deviation : network.deviations) {
    CHECK(deviation.from == 4);
    missing[{deviation.peer, deviation.round, deviation.from}] = deviation.values;
    first = std::min(first, deviation.round);
  }
  CHECK(missing.size() >= 3 * (100 - first) - 3);
  std::vector<std::vector<double>> rows;
  for (const auto& row : network.start) rows.emplace_back(row.begin(), row.end());
  std::vector<double> mean_before(kTestLength), mean_after(kTestLength);
  for (Round t = 0; t < 100; ++t) {
    if (t == first + 1)
      for (std::size_t i = 0; i < 8; ++i)
        for (std::size_t k = 0; k < kTestLength && i != 4; ++k) mean_before[k] += rows[i][k] / 7;
    const auto before = rows;
    for (int i = 0; i < 8; ++i)
      for (const topology::Neighbour& j : network.matrices().at(t)->in_neighbours(i)) {
        const auto left_out = missing.find({i, t, j.peer});
        const std::size_t used = left_out == missing.end() ? kTestLength : left_out->second;
        for (std::size_t k = 0; k < used; ++k)
          rows[static_cast<std::size_t>(i)][k] +=
              j.weight * (before[static_cast<std::size_t>(j.peer)][k] -
                          before[static_cast<std::size_t>(i)][k]);
      }
  }
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t k = 0; k < kTestLength && i != 4; ++k) {
      mean_after[k] += rows[i][k] / 7;
      CHECK(network.rows[i][k] == doctest::Approx(rows[i][k]).epsilon(1e-5));
    }
  for (std::size_t k = 0; k < kTestLength; ++k)
    CHECK(std::abs(mean_after[k] - mean_before[k]) < 1e-12);
}

TEST_CASE(
    "a ring that loses two peers falls apart: both parts continue, and report the peers that are "
    "unreachable") {
  Dying dying{.deaths = {{0, 100ms}, {4, 100ms}}};
  PullTrainer trainer(8, kTestLength, 0.05F);
  Network network("ring", 8, kTestLength, dying.options());
  network.run("dpsgd", {}, 50, &trainer);
  CHECK(network.finished == 6);
  CHECK(std::ranges::count(dying.messages,
                           "peers 0, 4, 5, 6, 7 are unreachable; 3 of 8 peers continue") == 3);
  CHECK(std::ranges::count(dying.messages,
                           "peers 0, 1, 2, 3, 4 are unreachable; 3 of 8 peers continue") == 3);
}

TEST_CASE("a codec that rounds: survivors continue too") {
  Dying dying{.deaths = {{3, 103ms}}};
  NetworkOptions options = dying.options();
  options.codec = "bf16";
  PullTrainer trainer(8, kTestLength, 0.05F);
  Network network("ring", 8, kTestLength, options);
  network.run("dpsgd", {}, 50, &trainer);
  CHECK(network.fault == "");
  CHECK(network.finished == 7);
}

TEST_CASE(
    "a restored link takes effect again, under every policy, and both its ends agree from which "
    "round on") {
  for (const Policy policy : {Policy::sync, Policy::deadline, Policy::stale, Policy::async}) {
    CAPTURE(static_cast<int>(policy));
    Dying world{.cuts = {{0, 1, 103ms, 301ms}}};
    PullTrainer trainer(8, kTestLength, 0.05F);
    Network network("ring", 8, kTestLength, world.options(policy));
    network.run("dpsgd", {}, 80, &trainer);
    CHECK(network.fault == "");
    CHECK(network.finished == 8);
    const auto missing = missing_in(network);
    Round last = 0;
    for (const auto& [from, to, round] : missing) last = std::max(last, round);
    CHECK(last >= 20);
    CHECK(last < 45);
    if (policy == Policy::sync) CHECK(one_sided(missing) <= 1);  // in the round in which it broke
    const auto told = [&](int peer, int other) {
      return rounds_told(world.messages, fmt::format("peer {} is back: from round ", other),
                         fmt::format(" on peer {} mixes", peer));
    };
    CHECK(told(0, 1).size() == 1);
    CHECK(told(0, 1) == told(1, 0));
    if (policy == Policy::sync) CHECK(told(0, 1) == std::vector<Round>{last + 1});
  }
}

TEST_CASE(
    "two parts of a network find together again, and tracked gradients end at the optimum of all") {
  for (const char* algorithm : {"gradient_tracking", "d2", "extra"}) {
    CAPTURE(algorithm);
    Dying world{.cuts = {{0, 7, 205ms, 903ms}, {3, 4, 203ms, 905ms}}};
    PullTrainer trainer(8, kTestLength, 0.05F);
    Network network("ring", 8, kTestLength, world.options(), {.lazy = true});
    network.run(algorithm, {}, 2500, &trainer);
    CHECK(network.fault == "");
    CHECK(network.finished == 8);
    CHECK(std::ranges::count(world.messages, "all 8 peers are reachable") == 8);
    for (const auto& row : network.rows) CHECK(distance_to_point(row, trainer.optimum()) < 1e-4);
  }
}

TEST_CASE(
    "a peer that joins a running network begins with a neighbour's rows, and all end at the "
    "optimum of all") {
  for (const char* algorithm : {"gradient_tracking", "d2", "extra"})
    for (const int joiner : {0, 3, 8}) {
      CAPTURE(algorithm);
      CAPTURE(joiner);
      Dying world{.joins = {{joiner, 303ms}}};
      PullTrainer trainer(9, kTestLength, 0.05F);
      Network network("torus", 9, kTestLength, world.options(), {.lazy = true});
      network.run(algorithm, {}, 1500, &trainer);
      CHECK(network.fault == "");
      CHECK(network.finished == 9);
      for (const auto& row : network.rows) CHECK(distance_to_point(row, trainer.optimum()) < 1e-4);
    }
}

TEST_CASE(
    "peers that join, several at once, under every policy, and one after the other is the first") {
  for (const Policy policy : {Policy::sync, Policy::deadline, Policy::stale, Policy::async}) {
    CAPTURE(static_cast<int>(policy));
    Dying world{.joins = {{2, 303ms}, {3, 303ms}, {6, 52ms}}};
    PullTrainer trainer(8, kTestLength, 0.05F);
    Network network("ring", 8, kTestLength, world.options(policy));
    network.run("dpsgd", {}, 120, &trainer);
    CHECK(network.fault == "");
    CHECK(network.finished == 8);
    CHECK(distance_to_point(network.rows[2], trainer.optimum()) < 1.5);
  }
}

TEST_CASE(
    "a peer that joins during the others' last rounds receives rows, or knows that it came too "
    "late") {
  int late = 0, in_time = 0;
  Time end = 0ms;
  PullTrainer trainer(8, kTestLength, 0.05F);
  const auto run = [&](Network& network) { network.run("dpsgd", {}, 30, &trainer); };
  Dying world;
  const auto joining = [&](Time when) {
    world.joins = {{3, when}};
    NetworkOptions options = world.options();
    options.step_spread = 0.5;  // not all do their last round at the same time
    return options;
  };
  Network never("ring", 8, kTestLength, joining(1000s));
  never.watch = [&](int, Round, Time now) { end = now; };
  run(never);
  CHECK(never.stranded.contains(3));
  for (Time when = end - 100ms; when < end + 2ms; when += 1ms) {
    CAPTURE(when.count());
    Network network("ring", 8, kTestLength, joining(when));
    run(network);
    CHECK(network.fault == "");
    const bool stranded = network.stranded.contains(3);
    CHECK(network.finished == (stranded ? 7 : 8));
    ++(stranded ? late : in_time);
  }
  CHECK(late > 0);
  CHECK(in_time > 0);
}

TEST_CASE("a peer that was cut off from all and is connected again skips to the others' round") {
  Dying world{.cuts = {{2, 1, 103ms, 700ms}, {2, 3, 103ms, 710ms}}};
  NetworkOptions options = world.options();
  options.slow_peers = 1;  // peer 0: the others wait for it, the one that is alone does not
  options.slow_factor = 3;
  PullTrainer trainer(8, kTestLength, 0.05F);
  Network network("ring", 8, kTestLength, options);
  network.run("dpsgd", {}, 200, &trainer);
  CHECK(network.fault == "");
  CHECK(network.finished == 8);
}

TEST_CASE(
    "links are lost and restored at random: no peer waits for ever, and the ends of a link agree") {
  for (std::uint32_t seed = 0; seed < 24; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, 0, Purpose::test);
    const auto between = [&](double low, double high) {
      return Time(static_cast<std::int64_t>(1e6 * (low + (high - low) * random.next_double())));
    };
    Dying world;
    const std::vector<std::pair<int, int>> edges{{0, 1}, {1, 2}, {2, 3}, {3, 4},
                                                 {4, 5}, {5, 6}, {6, 7}, {0, 7}};
    std::map<std::pair<int, int>, Time> free;  // from when on a link can be cut again
    for (int k = 0; k < 24; ++k) {
      const auto edge = edges[static_cast<std::size_t>(random.next_double() * 8)];
      const Time from = free[edge] + between(5, 300), until = from + between(3, 250);
      world.cuts.push_back({edge.first, edge.second, from, until});
      free[edge] = until + 5ms;
    }
    if (seed % 3 == 0) world.joins[static_cast<int>(seed / 3 % 8)] = 40ms;
    if (seed % 3 == 0)  // the joiner's links are not there to be cut before
      std::erase_if(world.cuts, [&](const auto& cut) {
        return world.joins.contains(cut.a) || world.joins.contains(cut.b);
      });
    NetworkOptions options = world.options(seed % 4 == 3 ? Policy::deadline : Policy::sync);
    options.step_spread = 0.5;
    PullTrainer trainer(8, kTestLength, 0.05F);
    Network network("ring", 8, kTestLength, options, {.lazy = true});
    network.run(seed % 2 == 0 || seed % 4 == 3 ? "dpsgd" : "gradient_tracking", {}, 1200, &trainer);
    CHECK(network.fault == "");
    CHECK(network.finished == 8);
    if (seed % 2 == 1 && seed % 4 != 3)
      for (const auto& row : network.rows) CHECK(distance_to_point(row, trainer.optimum()) < 1e-3);
    if (seed % 4 != 3) CHECK(one_sided(missing_in(network)) <= 2 * world.cuts.size());
  }
}
