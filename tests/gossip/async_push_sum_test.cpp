// Asynchronous push-sum against its paper's iteration in double, in the order of events; what it
// keeps, event by event, with messages lost; and how little a slow peer is to the others.
#include <algorithm>
#include <map>
#include <optional>

#include "tests/gossip/pace_test_util.hpp"
#include "topology/building.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;
using namespace std::chrono_literals;

namespace {

/// A circle with two more edges: strongly connected, and peer 0 has three out-neighbours and one
/// in-neighbour.
std::unique_ptr<topology::MixingSchedule> uneven_schedule() {
  const topology::Graph graph{{{1, 2, 4}, {2}, {3}, {0, 4}, {5}, {0}}};
  auto made =
      topology::make_schedule(topology::static_topology(graph), {.weights = "out_degree"}, "");
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message));
  return std::move(made).value();
}

/// Whether the message of that number from one peer to another is lost.
bool lost_by_chance(int from, int to, Round number, double share) {
  return RandomStream(17, static_cast<std::uint32_t>(from * 100 + to), Purpose::test, number)
             .next_double() < share;
}

std::function<bool(const ChunkHeader&)> losing(double share) {
  const auto sent = std::make_shared<std::map<std::pair<int, int>, Round>>();
  return [=](const ChunkHeader& header) {
    return lost_by_chance(header.from, header.to, (*sent)[{header.from, header.to}]++, share);
  };
}

/// By running sums, in double, by the clock.
class PushSumByTheClock {
 public:
  /// `lost`: the share of messages that are.
  PushSumByTheClock(const topology::MixingSchedule& schedule, const NetworkOptions& options,
                    const PullTrainer& trainer, double lost)
      : w_(*schedule.at(0)), options_(options), trainer_(trainer), lost_(lost) {}

  std::vector<Values> run(const std::vector<std::vector<float>>& start, Round rounds) {
    for (const auto& row : start) {
      Peer peer;
      peer.z.assign(row.begin(), row.end());
      peer.sum = peer.z;
      peer.sum.push_back(1);
      peer.given.assign(peer.sum.size(), 0);
      peers_.push_back(std::move(peer));
    }
    for (int i = 0; i < w_.peers(); ++i) at(i).next = step_time(options_, i, 0);
    for (std::size_t left = peers_.size() * rounds; left > 0; --left) {
      int next = -1;
      for (int i = 0; i < w_.peers(); ++i)
        if (at(i).round < rounds && (next < 0 || at(i).next < at(next).next)) next = i;
      end_round(next, rounds);
    }
    std::vector<Values> z;
    for (const Peer& peer : peers_) z.push_back(peer.z);
    return z;
  }

 private:
  struct Sent {
    Round round, gave;
    Time when;
    Values given;
  };
  struct Peer {
    Values z, sum, given;
    std::vector<Sent> sent;
    std::map<int, Values> used;
    std::map<int, Round> used_of;
    Round round = 0, gave = 0;
    Time next{0};
    std::optional<Time> ended;
  };

  Peer& at(int i) { return peers_[static_cast<std::size_t>(i)]; }

  void end_round(int i, Round rounds) {
    Peer& me = at(i);
    const Time now = me.next;
    descend(me.sum, me.z, trainer_.target(i));
    const double enough = 0.6 * std::min(1.0, 64.0 / static_cast<double>(me.round - me.gave + 1));
    std::size_t there = 0, gave = 0;
    for (const topology::Neighbour& j : w_.in_neighbours(i)) {
      if (at(j.peer).ended && *at(j.peer).ended + options_.links.latency <= now) continue;
      ++there;
      gave += me.used.contains(j.peer) && me.used_of[j.peer] + 1 == me.round ? 1 : 0;
    }
    const bool gives = me.sum.back() >= enough || (there > 0 && gave == there);
    if (gives) me.gave = me.round;
    for (std::size_t k = 0; k < me.sum.size() && gives; ++k) me.given[k] += me.sum[k];
    me.sent.push_back({me.round, me.gave, now, me.given});
    double kept = 1;
    for (const int j : w_.out_neighbours(i)) {
      if (at(j).ended && *at(j).ended + options_.links.latency <= now) continue;
      for (const topology::Neighbour& heard : w_.in_neighbours(j))
        if (heard.peer == i && gives) kept -= heard.weight;
    }
    for (double& value : me.sum) value *= kept;
    for (const topology::Neighbour& j : w_.in_neighbours(i)) {
      const auto& sent = at(j.peer).sent;
      const auto newest = std::find_if(sent.rbegin(), sent.rend(), [&](const Sent& message) {
        return message.when + options_.links.latency <= now &&
               !lost_by_chance(j.peer, i, message.round, lost_);
      });
      if (newest == sent.rend()) continue;
      me.used_of[j.peer] = newest->gave;
      Values& used = me.used[j.peer];
      used.resize(me.sum.size());
      for (std::size_t k = 0; k < used.size(); ++k)
        me.sum[k] += j.weight * (newest->given[k] - used[k]);
      used = newest->given;
    }
    for (std::size_t k = 0; k < me.z.size(); ++k) me.z[k] = me.sum[k] / me.sum.back();
    if (++me.round == rounds) me.ended = now;
    else me.next = now + step_time(options_, i, me.round);
  }

  const topology::MixingMatrix& w_;
  const NetworkOptions& options_;
  const PullTrainer& trainer_;
  double lost_;
  std::vector<Peer> peers_;
};

/// Σ_i (x_i, w_i) + Σ_{j→i} W_ij (S_j − S_ij) of a running network, from the rows of its nodes.
Values mass_of(const Network& network) {
  const auto w = network.matrices().at(0);
  const auto kSum = 1, kGiven = 3, kFirstUsed = 4;
  Values mass(kLength + 1);
  for (int i = 0; i < network.peers(); ++i) {
    Node& node = *network.live[static_cast<std::size_t>(i)];
    for (std::size_t k = 0; k <= kLength; ++k) mass[k] += node.row(kSum)[k];
    int place = kFirstUsed;
    for (const topology::Neighbour& j : w->in_neighbours(i)) {
      const std::span<float> given = network.live[static_cast<std::size_t>(j.peer)]->row(kGiven),
                             used = node.row(place++);
      for (std::size_t k = 0; k < given.size(); ++k)
        mass[k % (kLength + 1)] += static_cast<double>(static_cast<float>(j.weight)) *
                                   (static_cast<double>(given[k]) - used[k]);
    }
  }
  return mass;
}

}  // namespace

TEST_CASE(
    "asynchronous push-sum is its paper's iteration, in the order of events, whatever is lost") {
  for (const double share : {0.0, 0.3}) {
    CAPTURE(share);
    NetworkOptions options = at_their_own_pace(Policy::async, 1ms);
    PullTrainer trainer(6, kLength, kRate);
    for (const Round rounds : {Round{1}, Round{2}, Round{5}, Round{120}}) {
      CAPTURE(rounds);
      options.loses = losing(share);
      Network network(uneven_schedule(), kLength, options);
      PushSumByTheClock reference(network.matrices(), options, trainer, share);
      const auto expected = reference.run(network.start, rounds);
      network.run("async_push_sum", {}, rounds, &trainer);
      CHECK(network.finished == 6);
      CHECK(largest_difference(network.rows, expected) < 1e-5);
    }
  }
}

TEST_CASE(
    "asynchronous push-sum keeps its sums, what is under way included, at every event, and ends at "
    "the true mean") {
  struct Case {
    Policy policy;
    Time latency;
    double lost;
  };
  // Latencies beyond a step: sums are superseded on their way too.
  for (const Case& each : {Case{Policy::async, 1ms, 0.3}, Case{Policy::async, 35ms, 0.0},
                           Case{Policy::async, 35ms, 0.5}, Case{Policy::stale, 1ms, 0.0},
                           Case{Policy::stale, 35ms, 0.0}}) {
    CAPTURE(static_cast<int>(each.policy));
    CAPTURE(each.latency.count());
    CAPTURE(each.lost);
    NetworkOptions options = at_their_own_pace(each.policy, each.latency);
    options.slow_peers = 1;
    options.slow_factor = 3;
    options.loses = losing(each.lost);
    PullTrainer still(6, kLength, 0.0F);
    Network network(uneven_schedule(), kLength, options);
    Values expected = sum_of(network.start);
    expected.push_back(6);
    double drift = 0;
    int events = 0;
    bool all_go_on = true;  // a finished peer is given nothing more, but sums are one for all
    network.watch = [&](int, Round done, Time) {
      all_go_on = all_go_on && done < 400;
      if (!all_go_on) return;
      const Values mass = mass_of(network);
      for (std::size_t k = 0; k < mass.size(); ++k)
        drift = std::max(drift, std::abs(mass[k] - expected[k]));
      ++events;
    };
    network.run("async_push_sum", {}, 400, &still);
    CHECK(events > 3 * 400);
    CHECK(drift < 2e-5);
    for (const auto& row : network.rows)
      for (std::size_t k = 0; k < kLength; ++k)
        CHECK(row[k] == doctest::Approx(expected[k] / 6).epsilon(1e-4).scale(1));
  }
}

TEST_CASE(
    "no peer gives all its weight away: where messages take much longer than rounds, where one is "
    "slow, when the others are done") {
  struct Case {
    Time latency;
    double slow_factor;
  };
  for (const Case& each : {Case{500ms, 1}, Case{1ms, 10}, Case{100ms, 30}}) {
    CAPTURE(each.latency.count());
    NetworkOptions options = at_their_own_pace(Policy::async, each.latency);
    options.slow_peers = 1;
    options.slow_factor = each.slow_factor;
    PullTrainer trainer(6, kLength, kRate);
    Network network(uneven_schedule(), kLength, options);
    double least = 1;
    network.watch = [&](int peer, Round, Time) {
      const double weight = network.live[static_cast<std::size_t>(peer)]->row(1)[kLength];
      least = std::min(least, weight);
    };
    network.run("async_push_sum", {}, 2000, &trainer);
    CHECK(network.finished == 6);
    CHECK(least > 0.05);
    for (const auto& row : network.rows)
      for (const float value : row) CHECK(std::abs(value) < 5);
  }
}

TEST_CASE(
    "asynchronous push-sum in step is push-sum, and after twenty thousand rounds its sums are "
    "still what they were") {
  PullTrainer trainer(6, kLength, kRate), still(6, kLength, 0.0F);
  Network ours(uneven_schedule(), kLength), theirs(uneven_schedule(), kLength),
      longer(uneven_schedule(), kLength);
  ours.run("async_push_sum", {}, 200, &trainer);
  theirs.run("push_sum", {}, 200, &trainer);
  std::vector<Values> expected;
  for (const auto& row : theirs.rows) expected.emplace_back(row.begin(), row.end());
  CHECK(largest_difference(ours.rows, expected) < 1e-5);

  Values kept = sum_of(longer.start);
  longer.run("async_push_sum", {}, 20'000, &still);
  const Values sums = sum_of(longer.every_row[1]);
  CHECK(sums[kLength] == doctest::Approx(6).epsilon(2e-5));
  for (std::size_t k = 0; k < kLength; ++k) {
    CHECK(sums[k] == doctest::Approx(kept[k]).epsilon(1e-4).scale(1));
    for (const auto& row : longer.rows)
      CHECK(row[k] == doctest::Approx(kept[k] / 6).epsilon(1e-4).scale(1));
  }
}

TEST_CASE("a peer that is ten times slower does not slow down the others of a ring of 16") {
  const auto rounds_done = [](const std::string& algorithm, Policy policy) {
    NetworkOptions options = at_their_own_pace(policy, 1ms);
    options.slow_peers = 1;
    options.slow_factor = 10;
    PullTrainer trainer(16, kLength, kRate);
    Network network("ring", 16, kLength, options);
    std::map<int, double> done;
    network.watch = [&](int peer, Round, Time now) { done[peer] += now <= 2s ? 1 : 0; };
    network.run(algorithm, {}, 220, &trainer);
    CHECK(network.finished == 16);
    for (const auto& row : network.rows)
      for (const float value : row) CHECK(std::isfinite(value));
    double least = done[1];
    for (int peer = 1; peer < 16; ++peer) least = std::min(least, done[peer]);
    return least;
  };
  const double in_step = rounds_done("dpsgd", Policy::sync);
  CHECK(rounds_done("async_push_sum", Policy::async) > 5 * in_step);
  CHECK(rounds_done("ad_psgd", Policy::sync) > 5 * in_step);
}

TEST_CASE(
    "asynchronous push-sum: the survivors of a loss end at their optimum's neighbourhood, under "
    "every policy") {
  for (const Policy policy : {Policy::sync, Policy::stale, Policy::async}) {
    CAPTURE(static_cast<int>(policy));
    NetworkOptions options;
    options.policy = policy;
    options.step_time = 10ms;
    options.links = {1ms, 0};
    options.tolerates_peer_loss = true;
    options.deaths = {{2, Time(205ms)}};
    PullTrainer trainer(7, kLength, 0.02F);
    Network network("exponential", 7, kLength, options, {.weights = "out_degree"});
    network.run("async_push_sum", {}, 800, &trainer);
    CHECK(network.fault == "");
    CHECK(network.finished == 6);
    for (std::size_t k = 0; k < kLength; ++k) {
      double optimum = 0, mean = 0;
      for (const int i : {0, 1, 3, 4, 5, 6}) {
        optimum += trainer.target(i)[k] / 6;
        mean += network.rows[static_cast<std::size_t>(i)][k] / 6;
      }
      CHECK(mean == doctest::Approx(optimum).epsilon(0.02).scale(1));
    }
  }
}

TEST_CASE(
    "asynchronous push-sum: where a network resumes from checkpoints, links that were in step do, "
    "and others begin anew") {
  const auto algorithm = make_algorithm("async_push_sum", {}).value();
  const auto schedule = uneven_schedule();
  const int peer = 4;  // receives from 0 and 3, so it keeps two numbers of each, and one of its own
  REQUIRE(algorithm->counters(peer, *schedule) == 5);
  constexpr std::uint64_t kAnew = ~std::uint64_t{0};
  std::vector<std::uint64_t> counters{200, 100, 150, 50, 199};
  algorithm->resume(peer, 200, counters, *schedule);
  CHECK(counters == std::vector<std::uint64_t>{200, 100, 0, kAnew, 199});
  counters.assign(5, 0);
  algorithm->resume(peer, 0, counters, *schedule);
  CHECK(counters == std::vector<std::uint64_t>(5, 0));
}
