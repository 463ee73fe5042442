// Policies: the rows that a mix waits for, and those that it takes.
#include <algorithm>
#include <map>
#include <set>

#include "tests/gossip/test_network.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;
using namespace std::chrono_literals;

namespace {

/// A network in which peer 0 takes ten times as long for a step as the others.
NetworkOptions with_a_straggler(Policy policy) {
  NetworkOptions options;
  options.policy = policy;
  options.step_time = 10ms;
  options.slow_peers = 1;
  options.slow_factor = 10;
  options.links = {1ms, 0};
  return options;
}

/// Replays W in double with what deviated left out: x_i ← x_i + Σ_j W_t[i][j] (x_j − x_i) over the
/// rows that were used.
std::vector<std::vector<double>> replayed(const Network& network, Round rounds) {
  std::set<std::tuple<int, Round, int>> missing;
  for (const auto& deviation : network.deviations) {
    REQUIRE(deviation.missing);
    missing.insert({deviation.peer, deviation.round, deviation.from});
  }
  std::vector<std::vector<double>> rows;
  for (const auto& row : network.start) rows.emplace_back(row.begin(), row.end());
  for (Round t = 0; t < rounds; ++t) {
    const auto before = rows;
    const auto matrix = network.matrices().at(t);
    for (int i = 0; i < network.peers(); ++i)
      for (const topology::Neighbour& j : matrix->in_neighbours(i)) {
        const bool left_out = missing.contains({i, t, j.peer});
        REQUIRE(left_out == missing.contains({j.peer, t, i}));  // both ends agree
        for (std::size_t k = 0; k < rows.front().size() && !left_out; ++k)
          rows[static_cast<std::size_t>(i)][k] +=
              j.weight * (before[static_cast<std::size_t>(j.peer)][k] -
                          before[static_cast<std::size_t>(i)][k]);
      }
  }
  return rows;
}

}  // namespace

TEST_CASE("deadline: where no peer is late it is sync, to the bit, on any link") {
  for (const char* kind : {"ring", "torus", "star", "complete", "random_matching"}) {
    CAPTURE(kind);
    const int n = 9 - (std::string(kind) == "random_matching");
    PullTrainer trainer(n, 10, 0.05F);
    NetworkOptions sync, deadline, distant;
    deadline.policy = distant.policy = Policy::deadline;
    sync.step_time = deadline.step_time = distant.step_time = 3ms;
    distant.links = {20ms, 0};
    Network expected(kind, n, 10, sync);
    expected.run("dpsgd", {}, 40, &trainer);
    // The end that decides is done a latency before the other end, and if partners change, such
    // leads add up.
    const bool partners_change = std::string(kind) == "random_matching";
    for (const NetworkOptions& options : {deadline, partners_change ? deadline : distant}) {
      Network network(kind, n, 10, options);
      network.run("dpsgd", {}, 40, &trainer);
      CHECK(network.fault == "");
      CHECK(network.finished == n);
      CHECK(network.rows == expected.rows);
      CHECK(network.deviations.empty());
    }
  }
}

TEST_CASE(
    "deadline: both ends of an edge agree, and the rows are those of the W that was realised") {
  for (const char* kind : {"ring", "torus", "complete", "random_matching", "star"}) {
    CAPTURE(kind);
    const int n = 16;
    NetworkOptions options = with_a_straggler(Policy::deadline);
    options.link_model = [](int from, int to) {
      return LinkModel{1ms * ((from * 7 + to * 3) % 23), 0};
    };
    options.slow_factor = 30;
    Network network(kind, n, 10, options);
    PullTrainer still(n, 10,
                      0.0F);  // steps take their time and change nothing: what remains is mixing
    network.run("dpsgd", {}, 60, &still);
    CHECK(network.fault == "");
    CHECK(network.finished == n);
    // A peer with no neighbour but the straggler, such as a leaf of its star, waits for it.
    CHECK(network.deviations.empty() == (std::string(kind) == "star"));
    const auto expected = replayed(network, 60);
    double drift = 0;
    for (std::size_t k = 0; k < 10; ++k) {
      double before = 0, after = 0;
      for (std::size_t i = 0; i < 16; ++i) {
        CHECK(network.rows[i][k] == doctest::Approx(expected[i][k]).epsilon(1e-5));
        before += network.start[i][k];
        after += expected[i][k];
      }
      drift = std::max(drift, std::abs(after - before));
    }
    CHECK(drift < 1e-12);
  }
}

TEST_CASE("deadline: a straggler costs the others little, and still takes part") {
  PullTrainer trainer(16, 10, 0.05F);
  NetworkOptions even = with_a_straggler(Policy::deadline);
  even.slow_peers = 0;
  Network undisturbed("ring", 16, 10, even),
      disturbed("ring", 16, 10, with_a_straggler(Policy::deadline));
  Network waiting("ring", 16, 10, with_a_straggler(Policy::sync));
  const auto seconds = [&](Network& network) {
    network.run("dpsgd", {}, 200, &trainer);
    CHECK(network.finished == 16);
    CHECK(network.fault == "");
    return std::chrono::duration<double>(network.virtual_time).count();
  };
  const double alone = seconds(undisturbed), late = seconds(waiting);
  trainer.rate_steps.clear();
  const double beside = seconds(disturbed);
  CHECK(beside < 1.25 * alone);
  CHECK(late > 8 * alone);
  // A step has the size of its round at every peer.
  CHECK(trainer.rate_steps[0].size() < 40);
  CHECK(trainer.rate_steps[0].back() > 185);
  CHECK(trainer.rate_steps[8].back() == 199);
  // It takes part in about one of ten rounds, with both its neighbours.
  std::map<int, int> left_out;
  for (const auto& deviation : disturbed.deviations)
    if (deviation.peer == 0) ++left_out[deviation.from];
  for (const int neighbour : {1, 15}) {
    CHECK(left_out[neighbour] < 188);
    CHECK(left_out[neighbour] > 175);
  }
  const auto optimum = trainer.optimum();
  for (const auto& row : disturbed.rows)
    for (std::size_t k = 0; k < row.size(); ++k) CHECK(std::abs(row[k] - optimum[k]) < 1.0);
}

TEST_CASE("deadline: tracked gradients still end at the optimum of all") {
  PullTrainer trainer(16, 10, 0.1F);
  Network network("torus", 16, 10, with_a_straggler(Policy::deadline));
  network.run("gradient_tracking", {}, 600, &trainer);
  CHECK(network.fault == "");
  CHECK(!network.deviations.empty());
  const auto optimum = trainer.optimum();
  for (const auto& row : network.rows)
    for (std::size_t k = 0; k < row.size(); ++k) CHECK(std::abs(row[k] - optimum[k]) < 1e-4);
}

TEST_CASE("stale(s): the lead at distance k of a straggler is s k rounds, then its pace") {
  constexpr Round kStaleness = 4;
  NetworkOptions options = with_a_straggler(Policy::stale);
  options.staleness = kStaleness;
  options.links = {0ms, 0};
  options.slow_factor = 1000;  // so slow that all the others stand still when its first step ends
  PullTrainer trainer(16, 10, 0.05F);
  Network network("ring", 16, 10, options);
  std::map<int, Round> rounds;
  network.watch = [&](int peer, Round done, Time now) {
    if (now < 10s) rounds[peer] = done;
  };
  network.run("dpsgd", {}, 100, &trainer);
  CHECK(network.finished == 16);
  for (int peer = 1; peer < 16; ++peer)
    CHECK(rounds[peer] == kStaleness * static_cast<Round>(std::min(peer, 16 - peer)));

  // Then at its pace: every peer does one round in each of its rounds of 10 s.
  std::map<int, std::vector<Time>> done;
  network.watch = [&](int peer, Round, Time now) { done[peer].push_back(now); };
  network.run("dpsgd", {}, 100, &trainer);
  for (int peer = 0; peer < 16; ++peer) {
    const auto until = [&](Time when) {
      return std::ranges::count_if(done[peer], [when](Time now) { return now <= when; });
    };
    CHECK(until(405s) - until(105s) == 30);
  }
}

TEST_CASE("async: a straggler of a ring slows down no other peer") {
  PullTrainer trainer(16, 10, 0.05F);
  std::map<Policy, double> rate;
  for (const Policy policy : {Policy::sync, Policy::async}) {
    Network network("ring", 16, 10, with_a_straggler(policy));
    Round done = 0;
    network.watch = [&](int peer, Round, Time now) { done += peer != 0 && now <= 2s ? 1 : 0; };
    network.run("dpsgd", {}, 200, &trainer);
    rate[policy] = static_cast<double>(done);
  }
  CHECK(rate[Policy::async] > 5 * rate[Policy::sync]);
}

TEST_CASE(
    "stale and async: a link that is still busy with one row gets the newest one next, and no peer "
    "waits for it for ever") {
  for (const Policy policy : {Policy::stale, Policy::async}) {
    NetworkOptions options;
    options.policy = policy;
    options.staleness = 1;
    options.step_time = 1ms;
    options.link_model = [](int from, int to) {
      return LinkModel{0ms, from == 0 && to == 1 ? 1e4 : 1e9};
    };
    PullTrainer trainer(4, 100, 0.05F);
    Network network("ring", 4, 100, options);
    network.run("dpsgd", {}, 30, &trainer);
    CHECK(network.fault == "");
    CHECK(network.finished == 4);
  }
}

TEST_CASE("stale: a row that waits for a busy link is sent before its peer closes the link") {
  NetworkOptions options;
  options.policy = Policy::stale;
  options.staleness = 3;
  options.step_time = 1ms;
  options.goodbyes = true;
  options.link_model = [](int from, int) {
    return from == 0 ? LinkModel{1ms, 1e5} : LinkModel{1ms, 0};
  };  // a row takes 4 ms
  for (const Round rounds : {20, 21, 22, 23, 24, 25, 26, 27}) {
    CAPTURE(rounds);
    Network network("path", 2, 100, options);
    network.run("consensus", {}, rounds);
    CHECK(network.fault == "");
    CHECK(network.finished == 2);
  }
}

TEST_CASE(
    "stale and async: rows that are not taken, or that a slow link still reads, never take more "
    "memory than declared") {
  constexpr std::size_t kRow = 1000;
  for (const Policy policy : {Policy::stale, Policy::async}) {
    NetworkOptions options;
    options.policy = policy;
    options.step_time = 1ms;
    options.slow_peers = 1;  // it receives a hundred rows in each of its rounds: a flood
    options.slow_factor = 100;
    options.chunk_values = 300;
    options.link_model = [](int from, int to) {
      return LinkModel{1ms, from == 4 && to == 5 ? 1e4 : 1e9};
    };  // a slow reader
    PullTrainer trainer(8, kRow, 0.05F);
    Network network("ring", 8, kRow, options);
    network.run("dpsgd", {}, 300, &trainer);
    CHECK(network.finished == 8);
    // Of each of two neighbours up to three rows that came; and one more copy of a peer's own than
    // neighbours read.
    const std::size_t bound = 8 * (2 * 3 + 3) * gpu::DeviceRows<float>::bytes(1, kRow);
    CHECK(network.device().most_bytes() <= bound);
    CHECK(network.device().most_bytes() > bound / 3);
  }
}

TEST_CASE("whatever the policy, a run in virtual time is the same run again") {
  for (const Policy policy : {Policy::deadline, Policy::stale, Policy::async}) {
    NetworkOptions options = with_a_straggler(policy);
    options.chunk_values = 3;
    PullTrainer trainer(9, 10, 0.05F);
    Network first("torus", 9, 10, options), second("torus", 9, 10, options);
    CHECK(first.run("dpsgd", {}, 50, &trainer).rows == second.run("dpsgd", {}, 50, &trainer).rows);
  }
}

TEST_CASE("a policy refuses the algorithms whose guarantee it would break") {
  using enum PolicyConflict;
  using Expected = std::map<Policy, std::optional<PolicyConflict>>;
  const auto everywhere = [](PolicyConflict conflict) {
    return Expected{
        {Policy::deadline, conflict}, {Policy::stale, conflict}, {Policy::async, conflict}};
  };
  const Expected fixed{{Policy::deadline, fixed_matrix},
                       {Policy::stale, conserved_sums},
                       {Policy::async, conserved_sums}};
  const Expected sums{{Policy::stale, conserved_sums}, {Policy::async, conserved_sums}};
  const std::map<std::string, Expected> refused{
      {"gradient_tracking", sums},
      {"push_sum", sums},
      {"push_pull",
       {{Policy::deadline, synchronous},
        {Policy::stale, conserved_sums},
        {Policy::async, conserved_sums}}},
      {"d2", fixed},
      {"extra", fixed},
      {"diloco", everywhere(synchronous)},
      {"noloco", everywhere(synchronous)},
      {"sparseloco", everywhere(synchronous)},
      {"choco",
       {{Policy::deadline, fixed_matrix},
        {Policy::stale, synchronous},
        {Policy::async, synchronous}}},
      {"power_gossip",
       {{Policy::deadline, fixed_matrix},
        {Policy::stale, synchronous},
        {Policy::async, synchronous}}},
  };
  const auto schedule = testing::schedule("ring", 8);
  for (const AlgorithmKind& kind : algorithms::catalog()) {
    CAPTURE(kind.name);
    const auto algorithm = kind.make({}).value();
    CHECK(!policy_conflict(Policy::sync, *algorithm, *schedule));
    Expected expected;
    if (!algorithm->requirements().mixing_matrix) expected = everywhere(no_mixing);
    else if (refused.contains(kind.name)) expected = refused.at(kind.name);
    for (const Policy policy : {Policy::deadline, Policy::stale, Policy::async})
      CHECK(policy_conflict(policy, *algorithm, *schedule) == expected[policy]);
  }
  const std::map<std::string, Policy> named{{"sync", Policy::sync},
                                            {"deadline", Policy::deadline},
                                            {"stale", Policy::stale},
                                            {"async", Policy::async}};
  CHECK(policy_names().size() == named.size());
  for (const auto& [name, policy] : named) CHECK(policy_named(name) == policy);
}
