// The round at which processes begin together: whatever each has, on whatever graph, all come to
// the same one, the newest that all have, or that most have; or to the same sentence.
#include <algorithm>
#include <limits>

#include "base/philox.hpp"
#include "net/wire/frame.hpp"
#include "peer/runtime/start_round_agreement.hpp"
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

using Rounds = std::vector<gossip::Round>;

/// What each of them comes to, on the graph of `setup`, a process for each peer.
std::vector<StartRoundAgreement> all_gather(const Setup& setup, const std::vector<Rounds>& rounds) {
  std::vector<StartRoundAgreement> processes;
  for (std::size_t i = 0; i < rounds.size(); ++i)
    processes.emplace_back(std::vector{static_cast<int>(i)}, static_cast<int>(rounds.size()),
                           rounds[i]);
  for (int step = 0; step < steps_to_reach_all(setup); ++step) {
    std::vector<std::string> contributions;
    for (const StartRoundAgreement& process : processes)
      contributions.push_back(process.contribution());
    for (std::size_t i = 0; i < rounds.size(); ++i)
      for (const int partner : setup.algorithm->partners(static_cast<int>(i), *setup.schedule))
        CHECK(processes[i].merge(contributions[static_cast<std::size_t>(partner)]).ok());
  }
  return processes;
}

Setup on(const std::string& topology, int peers, const std::string& algorithm = "dpsgd") {
  return set_up({"topology.kind=" + topology, fmt::format("run.peers={}", peers),
                 "algorithm.kind=" + algorithm});
}

Rounds common_to(const std::vector<Rounds>& rounds) {
  Rounds common = rounds.front();
  for (const Rounds& some : rounds)
    std::erase_if(common, [&](gossip::Round r) { return !std::ranges::binary_search(some, r); });
  return common;
}

std::vector<int> without(const std::vector<Rounds>& rounds, gossip::Round round) {
  std::vector<int> peers;
  for (std::size_t i = 0; i < rounds.size(); ++i)
    if (!std::ranges::binary_search(rounds[i], round)) peers.push_back(static_cast<int>(i));
  return peers;
}

}  // namespace

TEST_CASE(
    "processes with any rounds on any graph agree on the newest round that all have, or that most "
    "have") {
  int agreed = 0, refused = 0;
  for (const char* topology :
       {"path", "ring", "star", "complete", "exponential", "random_matching"}) {
    const Setup setup = on(topology, 8);
    RandomStream random(7, 0, Purpose::initial_rows);
    for (int trial = 0; trial < 40; ++trial) {
      const auto below = [&](std::uint32_t n) {
        return static_cast<std::uint32_t>(random.next_double() * n);
      };
      std::vector<Rounds> rounds(8);
      for (Rounds& some : rounds)
        for (gossip::Round round = 10; round <= 60; round += 10)
          if (below(10) < 9) some.push_back(round);
      if (trial % 4 == 0) rounds[below(8)].clear();
      for (Rounds& some : rounds)
        if (some.empty()) some.push_back(0);
      const Rounds common = common_to(rounds);
      const std::vector<StartRoundAgreement> processes = all_gather(setup, rounds);
      for (const StartRoundAgreement& process : processes) {
        const auto outcome = process.outcome(false);
        const auto joined = process.outcome(true).value();
        CHECK(outcome.ok() == !common.empty());
        if (outcome.ok()) {
          CHECK(outcome->round == common.back());
          CHECK(joined.round == common.back());
        } else {
          CHECK(outcome.error().message == processes.front().outcome(false).error().message);
        }
        CHECK(joined.without == without(rounds, joined.round));
        for (gossip::Round round = 10; round <= 60; round += 10) {
          const std::size_t missing = without(rounds, round).size();
          CHECK(missing >= joined.without.size());
          if (round > joined.round) CHECK(missing > joined.without.size());
        }
      }
      ++(common.empty() ? refused : agreed);
    }
  }
  CHECK(agreed > 20);
  CHECK(refused > 20);
}

TEST_CASE(
    "the error names the peers that are behind and ahead; without any checkpoint the round is 0") {
  const Setup setup = on("path", 5);
  CHECK(all_gather(setup, {{0}, {0}, {0}, {0}, {0}}).front().outcome(false)->round == 0);
  CHECK(
      all_gather(setup, {{0, 10}, {0, 10, 20}, {0}, {0, 10}, {0}}).front().outcome(false)->round ==
      0);  // none has lost anything yet
  const auto sentence = [&](const std::vector<Rounds>& rounds) {
    return all_gather(setup, rounds).back().outcome(false).error().message;
  };
  CHECK(sentence({{40, 60}, {20, 40}, {60, 80}, {80, 100}, {80, 100}})
            .find("all processes can resume from: peer 1 has the checkpoints of rounds 40, 20, "
                  "peer 3 has the checkpoints of rounds 100, 80;") != std::string::npos);
  CHECK(sentence({{40, 60}, {0}, {60}, {60}, {0}})
            .find("from: peer 1 has none, peer 2 has the checkpoint of round 60;") !=
        std::string::npos);
}

TEST_CASE(
    "without a common round, the round that most peers have is used, or the newer of two; the "
    "others join with a neighbour's rows") {
  const Setup setup = on("path", 5);
  const auto agreed = [&](const std::vector<Rounds>& rounds) {
    return all_gather(setup, rounds).back().outcome(true).value();
  };
  const auto ahead_alone = agreed({{40, 60}, {40, 60}, {900, 920}, {40, 60}, {20, 40, 60}});
  CHECK(ahead_alone.round == 60);
  CHECK(ahead_alone.without == std::vector{2});
  const auto two_halves = agreed({{40, 60}, {40, 60}, {20}, {80}, {60, 80}});
  CHECK(two_halves.round == 60);
  CHECK(agreed({{40}, {40}, {20}, {80}, {80}}).round == 80);
  Rounds kept_all, ahead_long, too_many;
  for (gossip::Round round = 100; round <= 6000; round += 100)
    (round <= 3000 ? kept_all : ahead_long).push_back(round);
  ahead_long.insert(ahead_long.begin(), kept_all.begin(), kept_all.end());
  const auto kept = agreed({kept_all, kept_all, kept_all, ahead_long, kept_all});
  CHECK(kept.round == 3000);
  CHECK(kept.without.empty());
  for (gossip::Round round = 10; round < 10 + StartRoundAgreement::most_rounds(5); ++round)
    too_many.push_back(round);
  const auto unknown =
      all_gather(setup, {{1, 2}, {1, 2}, {1, 2}, too_many, {1, 2}}).front().outcome(true);
  REQUIRE_FALSE(unknown.ok());  // all but one might have round 10 too
  CHECK(unknown.error().message.find(
            "peer 0 has older checkpoints, peer 3 has the checkpoints of rounds ") !=
        std::string::npos);
  const auto new_disks = agreed({{0}, {0}, {80, 100}, {0}, {0}});
  CHECK(new_disks.round == 100);
  CHECK(new_disks.without == std::vector{0, 1, 3, 4});
}

TEST_CASE(
    "the newest of very many rounds fit into a contribution, and a contribution that makes no "
    "sense is "
    "refused") {
  Rounds many;
  for (int i = 0; i < 1000; ++i)
    many.push_back(std::numeric_limits<std::uint64_t>::max() - 1000 +
                   static_cast<std::uint64_t>(i));
  for (const int nodes : {1, 8, 1'000, 65'535}) {
    std::vector<int> all;
    for (int node = 0; node < nodes; ++node) all.push_back(node);
    const StartRoundAgreement full(all, nodes, many);
    CHECK(StartRoundAgreement::most_rounds(nodes) >= (nodes > 8'000 ? 3U : 24U));
    CHECK(full.contribution().size() <= net::kMaxContributionBytes);
    CHECK(full.outcome(false)->round == many.back());
  }
  StartRoundAgreement process({0, 1, 4}, 6, {10, 20});
  CHECK(process.contribution() == R"([[10,"31"],[20,"31"]])");
  for (const char* contribution : {"",
                                   "x",
                                   "null",
                                   "[]",
                                   "{}",
                                   "[10]",
                                   "[[10]]",
                                   R"([[10,"31",0]])",
                                   R"([["10","31"]])",
                                   R"([[10,31]])",
                                   R"([[-1,"31"]])",
                                   R"([[1.5,"31"]])",
                                   R"([[10e10,"31"]])",
                                   R"([[10,"3"]])",
                                   R"([[10,"310"]])",
                                   R"([[10,"3g"]])",
                                   R"([[10,"3A"]])",
                                   R"([[10,"34"]])",
                                   R"([[10,"00"]])",
                                   R"([[10,""]])"}) {
    CAPTURE(contribution);
    const Status merged = process.merge(contribution);
    REQUIRE_FALSE(merged.ok());
    CHECK(merged.error().kind == ErrorKind::lost_peer);
  }
  std::string longest =
      R"([0,"01"])";  // what is heard is said again, so it must fit into a contribution too
  for (std::size_t i = 1; i <= StartRoundAgreement::most_rounds(6); ++i)
    longest += fmt::format(R"(,[{},"01"])", i);
  CHECK_FALSE(process.merge("[" + longest + "]").ok());
  // What others say of this process is not counted, nor passed on.
  CHECK(process.merge(R"([[30,"f3"],[40,"31"]])").ok());
  CHECK(process.contribution() == R"([[10,"31"],[20,"31"],[30,"c2"]])");
  CHECK(process.merge(R"([[10,"f3"],[30,"c2"]])").ok());
  CHECK(process.outcome(false)->round == 10);
}

TEST_CASE("steps of the agreement: between all that ever take part, from one of them") {
  const auto steps = [](const char* participants) {
    return steps_to_reach_all(set_up({"topology.kind=path", "run.peers=16", "run.rounds=9",
                                      fmt::format("run.participants=[{}]", participants)}));
  };
  CHECK(steps("\"0-14\"") == steps("\"1-15\""));
  CHECK(steps("\"1-15\"") == 2 * 15);
  CHECK(steps("\"3-5\"") == 2 * 4);
  CHECK(steps("\"3\"") == 0);
}

TEST_CASE("the largest lead of a peer: the diameter of the graph, 2 with a server, or unbounded") {
  CHECK(largest_round_gap(on("ring", 9)) == 4);
  CHECK(largest_round_gap(on("complete", 9)) == 1);
  CHECK(largest_round_gap(on("ring", 9, "server")) == 2);
  CHECK_FALSE(largest_round_gap(on("random_matching", 8)));
  CHECK_FALSE(largest_round_gap(on("ring", 8, "async_server")));
  CHECK_FALSE(largest_round_gap(set_up({"algorithm.policy=async"})));
  CHECK_FALSE(largest_round_gap(set_up({"algorithm.kind=fedavg", "algorithm.fraction=0.5"})));
  CHECK(largest_round_gap(set_up({"algorithm.kind=fedavg"})) == 2);
  // Where participants change, of the largest graph, before a change and after it.
  CHECK(largest_round_gap(set_up({"topology.kind=ring", "run.peers=9", "run.rounds=10",
                                  "run.participants=[\"0-2\", \"5: 0-8\"]"})) == 8);
  // Of an open run, with any participants.
  CHECK(largest_round_gap(set_up({"run.open=true", "topology.kind=ring", "run.peers=9"})) == 8);
  CHECK(largest_round_gap(set_up({"run.open=true", "topology.kind=base", "run.peers=4",
                                  "run.participants=[\"0-1\"]"})) == 9);
}
