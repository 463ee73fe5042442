// Scenarios that found a fault that few seeds find: most in peers that join and leave.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "simulator/scenario/generator.hpp"
#include "tests/simulator/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::simulator;

namespace {

struct Case {
  std::uint64_t seed;
  const char* what;
};

/// Simulates the seed's scenario, and returns it.
Scenario check_seed(std::uint64_t seed, const char* what) {
  CAPTURE(seed);
  CAPTURE(what);
  Scenario scenario = draw_scenario(seed, fault_families({"swarm"}, seed).value());
  CHECK(simulate(scenario).report.violations == std::vector<std::string>{});
  return scenario;
}

/// An open run of three peers, in which peer 0 joins one of two others while they are apart.
Scenario of_three(std::vector<std::string> faults) {
  Scenario scenario;
  scenario.seed = 900332;
  scenario.topology = "complete";
  scenario.lazy = scenario.open = true;
  scenario.peers = 3;
  scenario.participants = {"1,2"};
  scenario.placement = {0, 1, 2};
  scenario.rounds = 130;
  scenario.length = scenario.chunk_values = 5;
  scenario.steps.rate = 0.05;
  scenario.network = {.window = 4,
                      .buffer_chunks = 5,
                      .latency_ms = 8,
                      .failure_timeout = 0.05,
                      .reconnect_delay = 0.02};
  scenario.faults = std::move(faults);
  return scenario;
}

}  // namespace

TEST_CASE("seeds with rare faults, of peers that join and leave above all, violate nothing") {
  for (const auto& [seed, what] :
       {Case{16, "under deadline a peer leaves out its own absence"},
        Case{168, "and begins in the first round after it"},
        Case{1584, "or one after that, with the rows of a donor that joins too"},
        Case{2939, "processes are stopped while a peer without donor joins"},
        Case{3102, "a peer has lost its donor, and its neighbours are behind the change"},
        Case{3919, "a process resumes from a round in which its peer took no part"},
        Case{6703, "processes are stopped after the last round of peers that have left by then"},
        Case{11175, "a run resumes in a round in which a peer takes no part any more"},
        Case{771, "a peer that joins anew records no round twice"},
        Case{1197, "only a waiting peer can tell another that others have begun"},
        Case{2092, "a run is stopped after peers have left"},
        Case{10383, "a peer is stopped while it records rounds that it leaves out"},
        Case{14845, "neighbours of a peer that ends without rows wait for it no longer"},
        Case{18796, "a peer that has left gives no rows to one that asks"},
        Case{15216, "a run resumes after a peer's round that it did not do, when it has left"}}) {
    check_seed(seed, what);
  }
}

TEST_CASE("open runs with rare faults violate nothing") {
  for (const auto& [seed, what] :
       {Case{43, "a peer is offered a link by the one that it asks for rows"},
        Case{67, "both ends of a link propose a round"},
        Case{113, "a peer that has its rows waits for its neighbours to agree"},
        Case{480, "a lost peer divides the graph, and not the links"},
        Case{1528, "parts that were apart have admitted a peer in different rounds"},
        Case{2009, "a neighbour takes a change for one of a later round"},
        Case{2072, "a peer joins where all others are connected over it"},
        Case{5421, "neighbours have ended before they knew of a change"},
        Case{8096, "an offer is made anew while the first one is accepted"},
        Case{8566, "a peer has come and left in one part, and only left in the other"},
        Case{11757, "rows of a neighbour that is ahead are in the way of its proposal"}}) {
    const Scenario scenario = check_seed(seed, what);
    CHECK(scenario.open);
  }
}

TEST_CASE("small open runs in which peers come and go within a few rounds violate nothing") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const Scenario scenario = draw_scenario(seed, fault_families({"open"}, seed).value());
    CHECK(scenario.open);
    CHECK(simulate(scenario).report.violations == std::vector<std::string>{});
  }
}

TEST_CASE("peers that join and leave an open run take part, and the bits are those of a plan") {
  Scenario scenario = ring("dpsgd", {"leave process=4 at=0.1", "leave process=5 at=0.3"});
  scenario.open = true;
  scenario.rounds = 120;
  const Outcome left = simulate(scenario);
  CHECK(left.report.violations == std::vector<std::string>{});
  CHECK(left.report.checked.at("bits") == 1);  // with one process that knew of it from the start
  scenario.participants = {"0-2"};
  scenario.faults = {"arrive process=3 at=0.1", "arrive process=5 at=0.3",
                     "arrive process=4 at=0.3"};
  const Outcome grown = simulate(scenario);
  CHECK(grown.report.violations == std::vector<std::string>{});
  CHECK(grown.joins == 3);
  CHECK(grown.losses == 9);  // of the links to those that are not there at the start
}

TEST_CASE("if all peers of an open run leave at once, they stay, and others join them") {
  for (const char* arrives : {"arrive process=5 at=0.1", "arrive process=5 at=0.15"}) {
    CAPTURE(arrives);
    Scenario scenario = ring("dpsgd", {arrives});
    for (int i = 0; i < 5; ++i)
      scenario.faults.push_back(fmt::format("leave process={} at=0.1", i));
    scenario.open = true;
    scenario.rounds = 150;
    scenario.participants = {"0-4"};
    const Outcome outcome = simulate(scenario);
    CHECK(outcome.report.violations == std::vector<std::string>{});
    CHECK(outcome.joins == 1);
    CHECK(violates(checked_after(scenario,
                                 [](Trace& trace) {
                                   for (Incarnation& each : trace.incarnations)
                                     if (!each.rounds.empty()) each.rounds.pop_back();
                                 }),
                   "termination"));
  }
}

TEST_CASE("peers of an open run that were apart meet, and both propose the same round") {
  const Outcome outcome = simulate(of_three(
      {"arrive process=0 at=0.0848", "crash process=1 at=0.1846",
       "pause process=2 at=0.1476 lasts=0.0548", "partition process=1 at=0.0845 lasts=0.2977"}));
  CHECK(outcome.report.violations == std::vector<std::string>{});
  CHECK(outcome.restorations > 0);
}

TEST_CASE("a peer takes part in rounds that it leaves out, also where others do not know of it") {
  const Scenario scenario = of_three({"arrive process=0 at=0.0842", "crash process=1 at=0.19",
                                      "partition process=1 at=0.0845 lasts=0.3"});
  CHECK(simulate(scenario).report.violations == std::vector<std::string>{});
  CHECK(violates(checked_after(scenario,
                               [](Trace& trace) {
                                 // The newcomer, after the rounds that it leaves out.
                                 std::vector<RoundRecord>& rounds = trace.incarnations[3].rounds;
                                 const auto gap = std::ranges::adjacent_find(
                                     rounds, [](const RoundRecord& one, const RoundRecord& next) {
                                       return next.round > one.round + 1;
                                     });
                                 REQUIRE(gap != rounds.end());
                                 std::next(gap)->begin[0][0] += 1e-3F;
                               }),
                 "continuity"));
}

TEST_CASE("a peer that is asked to leave while it joins leaves after it has joined") {
  Scenario scenario = ring("dpsgd", {"arrive process=3 at=0.1", "leave process=3 at=0.1001"});
  scenario.open = true;
  scenario.rounds = 120;
  scenario.participants = {"0-2"};
  const Outcome outcome = simulate(scenario);
  CHECK(outcome.report.violations == std::vector<std::string>{});
  CHECK(outcome.joins == 1);
  std::vector<std::string> order;
  for (const std::string& line : outcome.event_log)
    for (const char* event : {"peer 3 leaves", "peer 3 joins", "peer 3 takes no part"})
      if (line.find(event) != std::string::npos && std::ranges::find(order, event) == order.end())
        order.emplace_back(event);
  CHECK(order == std::vector<std::string>{"peer 3 leaves", "peer 3 joins", "peer 3 takes no part"});
}

TEST_CASE("rows of a change that arrive before the peer has begun an earlier one are kept") {
  for (const char* policy : {"sync", "stale", "deadline", "async"}) {
    CAPTURE(policy);
    Scenario scenario = ring("dpsgd", {});
    scenario.policy = policy;
    scenario.rounds = 40;
    scenario.participants = {"0-5", "3: 0,1", "5: 0-5", "6: 0,1", "8: 0-5", "9: 1,2", "10: 0-5"};
    CHECK(simulate(scenario).report.violations == std::vector<std::string>{});
  }
}
