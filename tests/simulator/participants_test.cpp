// Scenarios that found a fault that few seeds find: most in peers that join and leave.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "simulator/scenario/generator.hpp"
#include "tests/simulator/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::simulator;

TEST_CASE("seeds with rare faults, of peers that join and leave above all, violate nothing") {
  struct Case {
    std::uint64_t seed;
    const char* what;
  };
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
    CAPTURE(seed);
    CAPTURE(what);
    const Scenario scenario = draw_scenario(seed, fault_families({"swarm"}, seed).value());
    CHECK(simulate(scenario).report.violations == std::vector<std::string>{});
  }
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
