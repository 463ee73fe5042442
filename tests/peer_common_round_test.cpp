// The round at which processes begin together: whatever each has, on whatever graph, all come to the same one, the newest that
// all have, or to the same sentence.
#include <algorithm>
#include <limits>

#include "base/philox.hpp"
#include "peer/agreement.hpp"
#include "peer_words.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

using Rounds = std::vector<gossip::Round>;

/// What each of them comes to, on the graph of `setup`, a process for each peer.
std::vector<Agreement> confer(const Setup& setup, const std::vector<Rounds>& rounds) {
  std::vector<Agreement> processes;
  for (std::size_t i = 0; i < rounds.size(); ++i) processes.emplace_back(static_cast<int>(i), rounds[i]);
  for (int exchange = 0; exchange < exchanges_to_reach_all(setup); ++exchange) {
    std::vector<std::string> statements;
    for (const Agreement& process : processes) statements.push_back(process.say());
    for (std::size_t i = 0; i < rounds.size(); ++i)
      for (const int partner : setup.algorithm->partners(static_cast<int>(i), *setup.schedule))
        CHECK(processes[i].hear(statements[static_cast<std::size_t>(partner)]).ok());
  }
  return processes;
}

Setup on(const std::string& topology, int peers, const std::string& algorithm = "dpsgd") {
  return set_up({"topology.kind=" + topology, fmt::format("run.peers={}", peers), "algorithm.kind=" + algorithm});
}

Rounds common_to(const std::vector<Rounds>& rounds) {
  Rounds common = rounds.front();
  for (const Rounds& some : rounds) std::erase_if(common, [&](gossip::Round r) { return !std::ranges::binary_search(some, r); });
  return common;
}

}  // namespace

TEST_CASE("processes with any rounds on any graph agree on the newest one that all have, or all say the same") {
  int agreed = 0, refused = 0;
  for (const char* topology : {"path", "ring", "star", "complete", "exponential", "random_matching"}) {
    const Setup setup = on(topology, 8);
    RandomStream random(7, 0, Purpose::initial_rows);
    for (int trial = 0; trial < 40; ++trial) {
      const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random.next_double() * n); };
      std::vector<Rounds> rounds(8);
      for (Rounds& some : rounds)
        for (gossip::Round round = 10; round <= 60; round += 10)
          if (below(10) < 9) some.push_back(round);
      if (trial % 4 == 0) rounds[below(8)].clear();
      for (Rounds& some : rounds)
        if (some.empty()) some.push_back(0);
      const Rounds common = common_to(rounds);
      const std::vector<Agreement> processes = confer(setup, rounds);
      for (const Agreement& process : processes) {
        const auto outcome = process.outcome();
        CHECK(outcome.ok() == !common.empty());
        if (outcome.ok()) CHECK(*outcome == common.back());
        else CHECK(outcome.error().message == processes.front().outcome().error().message);
      }
      ++(common.empty() ? refused : agreed);
    }
  }
  CHECK(agreed > 20);
  CHECK(refused > 20);
}

TEST_CASE("who is behind and who is ahead is named; nobody having any is round 0") {
  const Setup setup = on("path", 5);
  CHECK(confer(setup, {{0}, {0}, {0}, {0}, {0}}).front().outcome().value() == 0);
  CHECK(confer(setup, {{0, 10}, {0, 10, 20}, {0}, {0, 10}, {0}}).front().outcome().value() == 0);  // none has lost anything yet
  const auto sentence = [&](const std::vector<Rounds>& rounds) { return confer(setup, rounds).back().outcome().error().message; };
  CHECK(sentence({{40, 60}, {20, 40}, {60, 80}, {80, 100}, {80, 100}}).find(
            "all processes can go on from: peer 1 has those of rounds 40, 20, peer 3 has those of rounds 100, 80;") != std::string::npos);
  CHECK(sentence({{40, 60}, {0}, {60}, {60}, {0}}).find("from: peer 1 has none, peer 2 has that of round 60;") != std::string::npos);
}

TEST_CASE("the newest of very many rounds fit into a statement, and a statement that makes no sense is refused") {
  Rounds many;
  for (int i = 0; i < 1000; ++i) many.push_back(std::numeric_limits<std::uint64_t>::max() - 1000 + static_cast<std::uint64_t>(i));
  const Agreement full(std::numeric_limits<int>::max(), many);
  CHECK(full.say().size() <= 4096);
  CHECK(full.outcome().value() == many.back());
  Agreement process(0, {10, 20});
  for (const char* statement : {"", "x", "null", "[]", "{}", R"({"common":[]})", R"({"common":1,"behind":{"peer":0,"rounds":[]}})",
                           R"({"common":[20,10],"behind":{"peer":0,"rounds":[10]},"ahead":{"peer":0,"rounds":[10]}})",
                           R"({"common":[10e10],"behind":{"peer":0,"rounds":[10]},"ahead":{"peer":0,"rounds":[10]}})",
                           R"({"common":[10],"behind":{"peer":-1,"rounds":[10]},"ahead":{"peer":0,"rounds":[10]}})",
                           R"({"common":[10],"behind":{"peer":0,"rounds":[10]},"ahead":{"peer":4294967296,"rounds":[10]}})",
                           R"({"common":[10],"behind":{"peer":0,"rounds":[10]},"ahead":{"peer":1.5,"rounds":[10]}})",
                           R"({"common":[10],"behind":{"peer":0,"rounds":[10]}})", R"({"common":[-1],"behind":{"peer":0}})",
                           R"({"common":[],"behind":{"peer":0,"rounds":[]},"ahead":{"peer":0,"rounds":[]}})"}) {
    CAPTURE(statement);
    const Status heard = process.hear(statement);
    REQUIRE_FALSE(heard.ok());
    CHECK(heard.error().kind == ErrorKind::lost_peer);
  }
  std::string longest = "0";  // what is heard is said again, so it must fit into a statement too
  for (std::size_t i = 1; i <= Agreement::kMostRounds; ++i) longest += fmt::format(",{}", i);
  CHECK_FALSE(process.hear(fmt::format(R"({{"common":[10],"behind":{{"peer":0,"rounds":[10]}},"ahead":{{"peer":0,"rounds":[{}]}}}})", longest)).ok());
  CHECK(process.outcome().value() == 20);
}

TEST_CASE("how far apart peers may be: the graph's width, a server's two, or any number of rounds") {
  CHECK(largest_lead(on("ring", 9)) == 4);
  CHECK(largest_lead(on("complete", 9)) == 1);
  CHECK(largest_lead(on("ring", 9, "server")) == 2);
  CHECK_FALSE(largest_lead(on("random_matching", 8)));
  CHECK_FALSE(largest_lead(on("ring", 8, "async_server")));
  CHECK_FALSE(largest_lead(set_up({"algorithm.policy=async"})));
  CHECK_FALSE(largest_lead(set_up({"algorithm.kind=fedavg", "algorithm.fraction=0.5"})));
  CHECK(largest_lead(set_up({"algorithm.kind=fedavg"})) == 2);
}
