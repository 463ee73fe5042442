// Catch-ups: a part of the network that is many rounds behind leaves rounds out together.
#include <algorithm>

#include "tests/gossip/membership/lone_peer.hpp"
#include "tests/gossip/rule_test_util.hpp"
#include "tests/gossip/test_network.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;
using namespace std::chrono_literals;

using Outcome = CatchUpPlan::Outcome;

TEST_CASE("a plan leaves the rounds of its catch-ups out, and only those") {
  CatchUpPlan plan;
  CHECK(plan.next(7) == 7);
  CHECK(plan.add({10, 50}, 3) == Outcome::adopted);
  CHECK(plan.add({60, 90}, 3) == Outcome::adopted);
  CHECK(plan.next(9) == 9);
  CHECK(plan.next(10) == 50);
  CHECK(plan.next(49) == 50);
  CHECK(plan.next(50) == 50);
  CHECK(plan.next(60) == 90);
  CHECK(plan.to_come(3).size() == 2);
  CHECK(plan.to_come(50).size() == 1);
  CHECK(plan.to_come(90).empty());
  CHECK(plan.resumes_by(9, 3) == 0);
  CHECK(plan.resumes_by(10, 3) == 50);
  CHECK(plan.resumes_by(70, 3) == 90);
  CHECK(plan.resumes_by(55, 50) == 0);
  CHECK(plan.resuming_in(50) == CatchUp{10, 50});
  CHECK_FALSE(plan.resuming_in(51));
  plan.forget_to_come(50);
  CHECK(plan.next(60) == 60);
  CHECK(plan.add({20, 40}, 50) == Outcome::known);  // it was left out
}

TEST_CASE("peers that hear the same announcements in any order follow the same plan") {
  const std::vector<CatchUp> announced{{10, 50}, {12, 70}, {10, 55}, {8, 48}, {9, 99}};
  std::vector<std::size_t> order{0, 1, 2, 3, 4};
  do {
    CatchUpPlan plan;
    for (const std::size_t k : order) plan.add(announced[k], 3);
    CAPTURE(order[0]);
    CAPTURE(order[1]);
    CAPTURE(order[2]);
    // A peer that has followed the first one announces another, which arrives behind it.
    plan.add({60, 90}, 3);
    REQUIRE(plan.to_come(3).size() == 2);
    CHECK(plan.to_come(3)[0] == CatchUp{8, 48});
    CHECK(plan.to_come(3)[1] == CatchUp{60, 90});
  } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("a catch-up whose first round has begun is late, unless it is left out anyway") {
  CatchUpPlan plan;
  CHECK(plan.add({10, 50}, 9) == Outcome::adopted);
  CHECK(plan.add({9, 40}, 9) == Outcome::late);
  CHECK(plan.add({10, 60}, 50) == Outcome::late);  // it was followed up to round 50
  CHECK(plan.add({10, 50}, 50) == Outcome::known);
  CHECK(plan.add({49, 80}, 50) == Outcome::known);
}

namespace {

constexpr std::size_t kHalvesLength = 10;

/// A ring of eight, whose halves 0 … 3 and 4 … 7 are apart for a while. The first half takes ten
/// times as long for a step.
struct Halves {
  Time until = 5s;
  Policy policy = Policy::sync;
  bool apart = false;
  std::vector<std::string> messages = {};
  std::map<int, std::vector<std::pair<Round, Time>>> done = {};  ///< by peer

  NetworkOptions options() {
    NetworkOptions options;
    options.policy = policy;
    options.step_time = 1ms;
    options.slow_peers = 4;
    options.slow_factor = 10;
    options.links = {200us, 0};
    options.tolerates_peer_loss = true;
    options.apart = apart;
    options.cuts = {{0, 7, 105ms, until}, {3, 4, 103ms, until + 2ms}};
    options.message = [this](const std::string& line) { messages.push_back(line); };
    return options;
  }
  void watch(Network& network) {
    network.watch = [this](int peer, Round rounds, Time now) {
      done[peer].push_back({rounds, now});
    };
  }
  /// The longest time between two rounds of any peer, and the rounds that a peer left out.
  Time longest_wait() const {
    Time longest{0};
    for (const auto& [peer, rounds] : done)
      for (std::size_t k = 1; k < rounds.size(); ++k)
        longest = std::max(longest, rounds[k].second - rounds[k - 1].second);
    return longest;
  }
  std::vector<Round> left_out(int peer) const {
    std::vector<Round> left_out;
    const auto& rounds = done.at(peer);
    for (std::size_t k = 1; k < rounds.size(); ++k)
      for (Round t = rounds[k - 1].first + 1; t < rounds[k].first; ++t) left_out.push_back(t);
    return left_out;
  }
};

}  // namespace

TEST_CASE("a half that is thousands of rounds behind catches up, and nobody waits for long") {
  for (const Policy policy : {Policy::sync, Policy::stale})
    for (const bool apart : {false, true}) {
      CAPTURE(static_cast<int>(policy));
      CAPTURE(apart);
      Halves world{.policy = policy, .apart = apart};
      PullTrainer trainer(8, kHalvesLength, 0.05F);
      Network network("ring", 8, kHalvesLength, world.options());
      world.watch(network);
      network.run("dpsgd", {}, 8000, &trainer);
      CHECK(network.fault == "");
      CHECK(network.faults.empty());
      CHECK(network.refused.empty());
      CHECK(network.finished == 8);
      // Without catching up the fast half waits until the slow one has done 3,000 rounds: 30 s.
      const Round notice = policy == Policy::sync ? 8 : 7 * 4 + 1;
      CHECK(world.longest_wait() < static_cast<int>(4 * notice + 4) * 11ms);
      const std::vector<Round> left_out = world.left_out(0);
      CHECK(left_out.size() > 2000);
      CHECK(trainer.rate_steps[0].size() < 6000);
      for (int peer = 0; peer < 8; ++peer) CHECK(trainer.rate_steps[peer].back() == 7999);
      for (int peer = 1; peer < 4; ++peer) CHECK(world.left_out(peer) == left_out);
      for (int peer = 4; peer < 8; ++peer) CHECK(world.left_out(peer).empty());
      for (const auto& row : network.rows)
        for (std::size_t k = 0; k < row.size(); ++k)
          CHECK(std::abs(row[k] - network.rows[0][k]) < 1);
    }
}

TEST_CASE("after a catch-up, tracked gradients, D² and EXTRA end at the optimum of all") {
  for (const char* algorithm : {"gradient_tracking", "d2", "extra"}) {
    CAPTURE(algorithm);
    Halves world{.until = 1s};
    PullTrainer trainer(8, kHalvesLength, 0.05F);
    Network network("ring", 8, kHalvesLength, world.options(), {.lazy = true});
    world.watch(network);
    network.run(algorithm, {}, 3000, &trainer);
    CHECK(network.fault == "");
    CHECK(network.finished == 8);
    CHECK(world.left_out(2).size() > 200);
    CHECK(world.longest_wait() < 500ms);
    for (std::size_t k = 0; k < kHalvesLength; ++k)
      for (const auto& row : network.rows) CHECK(std::abs(row[k] - trainer.optimum()[k]) < 1e-4);
  }
}

TEST_CASE("a part that is a few rounds behind does all of its rounds") {
  Halves world{.until = 125ms};
  PullTrainer trainer(8, kHalvesLength, 0.05F);
  Network network("ring", 8, kHalvesLength, world.options());
  world.watch(network);
  network.run("dpsgd", {}, 400, &trainer);
  CHECK(network.finished == 8);
  for (int peer = 0; peer < 8; ++peer) CHECK(world.left_out(peer).empty());
}

TEST_CASE("a catch-up that no peer can have announced is a protocol violation") {
  struct Announced {
    Round from, resumes_at;
    const char* why;  ///< null: it is taken
  };
  // The peer is in round 9, of 100. An announcement reaches its neighbour 2 rounds ahead.
  const Announced cases[] = {{12, 50, nullptr},
                             {14, 18, nullptr},
                             {1, 50, "can have announced"},  // before the first round
                             {8, 50, "which has begun"},
                             {9, 50, "which has begun"},
                             {13, 16, "can have announced"},  // it is not worth it
                             {12, 12, "can have announced"},
                             {15, 50, "can have announced"},  // long before it begins
                             {12, 5, "can have announced"},
                             {12, 100, "can have announced"},  // the run has no such round
                             {12, ~Round{0}, "can have announced"},
                             {~Round{0} - 1, ~Round{0}, "the run has 100 rounds"}};
  for (const Announced& c : cases) {
    CAPTURE(c.from);
    CAPTURE(c.resumes_at);
    LonePeer peer(1);
    Endpoint& endpoint = peer.exchange.endpoint(1);
    endpoint.begin_at(9);
    const Status status = peer.receive_catch_up(c.from, c.resumes_at);
    CHECK(status.ok() == (c.why == nullptr));
    if (!status.ok()) CHECK(status.error().message.find(c.why) != std::string::npos);
    CHECK(endpoint.next_round(9, 100) == 10);
    endpoint.begin_at(c.from - 1);
    if (c.why == nullptr) CHECK(endpoint.next_round(c.from - 1, 100) == c.resumes_at);
  }
}

TEST_CASE("a peer that is about to skip to its neighbour's round hears of a catch-up there") {
  LonePeer peer(1);
  Endpoint& endpoint = peer.exchange.endpoint(1);
  endpoint.begin_at(3);
  peer.membership.on_link_lost(0, "its connection broke");
  peer.membership.on_link_restored(0);
  REQUIRE(peer.receive(ControlMessage::propose_round, 40).ok());
  REQUIRE(peer.receive_catch_up(42, 80).ok());
  CHECK(endpoint.next_round(3, 100) == 40);
  CHECK(endpoint.next_round(40, 100) == 41);
  CHECK(endpoint.next_round(41, 100) == 80);
  CHECK(endpoint.rounds_left_out() == 36 + 38);
}

TEST_CASE("a peer that is about to catch up hears of its neighbour's next catch-up") {
  LonePeer peer(1, 3);
  for (const int partner : {0, 2}) peer.exchange.connect(1, partner, peer.dead_end);
  Endpoint& endpoint = peer.exchange.endpoint(1);
  endpoint.begin_at(3);
  REQUIRE(peer.receive_catch_up(6, 30).ok());
  peer.membership.on_link_lost(0, "its connection broke");
  peer.membership.on_link_restored(0);
  REQUIRE(peer.receive(ControlMessage::propose_round, 40).ok());
  REQUIRE(peer.receive_catch_up(43, 80).ok());
  for (const auto& [done, next] : {std::pair<Round, Round>{4, 5}, {5, 30}, {30, 31}, {42, 80}}) {
    endpoint.begin_at(done);
    CHECK(endpoint.next_round(done, 100) == next);
  }
}

TEST_CASE("a link takes effect in no round that may be left out, and in the ones before it") {
  // N is 3 here. The rounds 20 … 49 are left out: what takes effect after round 17 is told too
  // late.
  const std::pair<Round, bool> cases[] = {
      {16, true}, {17, true}, {18, false}, {49, false}, {50, true}};
  for (const auto& [round, accepted] : cases) {
    CAPTURE(round);
    LonePeer peer(1, 3);
    for (const int partner : {0, 2}) peer.exchange.connect(1, partner, peer.dead_end);
    peer.exchange.endpoint(1).begin_at(13);
    REQUIRE(peer.receive_catch_up(20, 50).ok());
    peer.membership.on_link_lost(0, "its connection broke");
    peer.membership.on_link_restored(0);
    REQUIRE(peer.receive(ControlMessage::propose_round, round).ok());
    CHECK(peer.exchange.endpoint(1).view().is_present(0) == accepted);
  }
}

TEST_CASE("no peer leaves rounds out where a rule guards it from its neighbours") {
  const MixingRule rule = rule_of("median");
  LonePeer peer(1, 2, &rule);
  const Status status = peer.receive_catch_up(5, 50);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.ends_with("it announces a catch-up in a run that has none"));
  CHECK(peer.exchange.endpoint(1).next_round(4, 100) == 5);
}

TEST_CASE("a neighbour that goes on announcing catch-ups is lost") {
  LonePeer peer(1);
  peer.exchange.endpoint(1).begin_at(3);
  Status status;
  int taken = 0;
  // Each is longer than the one before, and so is news.
  for (Round until = 9; status.ok(); until = until == 99 ? 9 : until + 1) {
    if (until == 9) peer.exchange.endpoint(1).catch_ups().forget_to_come(3);
    status = peer.receive_catch_up(5, until);
    ++taken;
  }
  CHECK(taken - 1 == static_cast<int>(peer.membership.flooding().largest_burst()));
  CHECK(status.error().message.find("more than 1088 changes of links in 10 s") !=
        std::string::npos);
}
