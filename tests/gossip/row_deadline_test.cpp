// The deadline for rows: a peer that answers and sends no rows is lost, and no honest one with it.
#include "gossip/exchange/row_deadline.hpp"

#include <algorithm>

#include "tests/gossip/test_network.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;
using namespace std::chrono_literals;

namespace {

constexpr Time kLimit = 1s, kTick = Network::kTick;

/// Ticks in which rows of peer 7 are awaited until they are overdue.
int ticks_until_overdue(RowDeadline& deadline, Round round) {
  const int awaited[] = {7};
  for (int ticks = 1; ticks < 10000; ++ticks)
    if (!deadline.advance(kTick, round, awaited).overdue.empty()) return ticks;
  return -1;
}

constexpr int ticks(double limits) { return static_cast<int>(limits * (kLimit / kTick)) + 1; }

/// A ring in which the rows of peer 2 that `loses` names never arrive.
NetworkOptions ring_options(Policy policy, std::function<bool(const ChunkHeader&)> loses) {
  NetworkOptions options;
  options.policy = policy;
  options.step_time = 10ms;
  options.links = {2ms, 0};
  options.tolerates_peer_loss = true;
  options.apart = true;
  options.row_limit = kLimit;
  options.loses = std::move(loses);
  return options;
}

}  // namespace

TEST_CASE("rows are overdue when one round has waited for them for the limit") {
  RowDeadline deadline(kLimit);
  CHECK(ticks_until_overdue(deadline, 3) == ticks(1));
  CHECK(ticks_until_overdue(deadline, 3) == ticks(1));  // and again, if the link is still there
  // Time counts only while a row is awaited, and within one round.
  for (int tick = 0; tick < ticks(5); ++tick) CHECK(deadline.advance(kTick, 4, {}).overdue.empty());
  const int awaited[] = {7};
  for (int tick = 0; tick < ticks(0.9); ++tick)
    CHECK(deadline.advance(kTick, 4, awaited).overdue.empty());
  CHECK(ticks_until_overdue(deadline, 5) == ticks(1));
}

TEST_CASE(
    "a neighbour that waits itself gets a limit more for each peer before it, within a bound") {
  RowDeadline deadline(kLimit);
  const int awaited[] = {7};
  deadline.advance(kTick, 3, awaited);
  REQUIRE(deadline.on_waiting(7, 3, 2).ok());
  CHECK(ticks_until_overdue(deadline, 3) == ticks(3) - 1);
  REQUIRE(deadline.on_waiting(7, 2, RowDeadline::kLongestChain).ok());
  CHECK(ticks_until_overdue(deadline, 3) == ticks(1 + RowDeadline::kLongestChain));
  // The next round has forgotten it.
  CHECK(ticks_until_overdue(deadline, 4) == ticks(1));
}

TEST_CASE("a peer that waits in a later round has no excuse for the row of this one") {
  RowDeadline deadline(kLimit);
  const int awaited[] = {7};
  deadline.advance(kTick, 3, awaited);
  REQUIRE(deadline.on_waiting(7, 4, 5).ok());
  CHECK(ticks_until_overdue(deadline, 3) == ticks(1) - 1);
  REQUIRE(deadline.on_waiting(7, 3, 5).ok());
  CHECK(ticks_until_overdue(deadline, 3) == ticks(6));
}

TEST_CASE("a chain that no honest peer can claim is refused") {
  RowDeadline deadline(kLimit);
  CHECK_FALSE(deadline.on_waiting(7, 0, 0).ok());
  CHECK_FALSE(deadline.on_waiting(7, 0, RowDeadline::kLongestChain + 1).ok());
}

TEST_CASE(
    "a peer says that it waits after half of the limit, again from time to time, and longer chains "
    "at once") {
  RowDeadline deadline(kLimit);
  const int awaited[] = {7};
  std::vector<std::pair<int, int>> announced;
  for (int tick = 1; tick <= ticks(1) - 1; ++tick) {
    if (tick == ticks(0.6)) REQUIRE(deadline.on_waiting(7, 0, 4).ok());
    if (const int chain = deadline.advance(kTick, 0, awaited).chain; chain > 0)
      announced.emplace_back(tick, chain);
  }
  REQUIRE(announced.size() >= 4);
  CHECK(announced[0] == std::pair(ticks(0.5), 1));
  CHECK(announced[1] == std::pair(ticks(0.6), 5));
  for (std::size_t k = 2; k < announced.size(); ++k) {
    CHECK(announced[k].second == 5);
    CHECK(announced[k].first - announced[k - 1].first <= ticks(0.125));
  }
}

TEST_CASE("of a ring with a peer that answers and sends no rows, that peer alone is lost") {
  for (const Policy policy : {Policy::sync, Policy::stale}) {
    CAPTURE(static_cast<int>(policy));
    PullTrainer trainer(8, 10, 0.1F);
    Network network("ring", 8, 10, ring_options(policy, [](const ChunkHeader& header) {
                      return header.from == 2 && header.round >= 5;
                    }));
    network.run("dpsgd", {}, 20, &trainer);
    CHECK(network.fault.empty());
    std::set<std::pair<int, int>> lost;
    for (const Network::Overdue& each : network.overdue) {
      lost.insert({each.here, each.there});
      CHECK(each.when > kLimit);
      CHECK(each.when < 2 * kLimit);
    }
    CHECK(lost == std::set<std::pair<int, int>>{{1, 2}, {3, 2}});
    CHECK(network.overdue[0].why.find("peer 2 is overdue: round ") == 0);
    CHECK(network.finished == 8);
  }
}

TEST_CASE("a peer that is slower than others by less than the limit is waited for") {
  PullTrainer trainer(6, 10, 0.1F);
  NetworkOptions options = ring_options(Policy::sync, {});
  options.slow_peers = 1;
  options.slow_factor = 90;  // 0.9 s a round
  Network network("ring", 6, 10, options);
  network.run("dpsgd", {}, 4, &trainer);
  CHECK(network.overdue.empty());
  CHECK(network.finished == 6);
}
