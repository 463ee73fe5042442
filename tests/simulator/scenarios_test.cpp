// The simulator: the protocol keeps its promises under faults, a run repeats itself, and the oracle
// detects what is wrong.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "simulator/scenario/generator.hpp"
#include "tests/simulator/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::simulator;
using namespace std::chrono_literals;

namespace {

Scenario scenario_of_seed(std::uint64_t seed, const std::string& faults) {
  return draw_scenario(seed, fault_families({faults}, seed).value());
}

/// A ring of six, in which one peer falls silent.
Trace without_peer_2(const std::string& policy) {
  Scenario scenario = ring("dpsgd", {"vanish process=2 at=0.3"});
  scenario.policy = policy;
  scenario.rounds = 200;
  scenario.network.failure_timeout = 0.5;
  return run_scenario(scenario, build_protocol(scenario).value());
}

}  // namespace

// Seeds with faults: tests/python/test_simulate.py.
TEST_CASE("seeds without faults violate nothing") {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    CAPTURE(seed);
    const Outcome outcome = simulate(scenario_of_seed(seed, "none"));
    CHECK(outcome.report.violations == std::vector<std::string>{});
    CHECK(outcome.report.checked.at("continuity") > 0);
  }
}

TEST_CASE("algorithms that no seed draws, with the networks and faults of seeds") {
  for (const char* algorithm : {"dmsgd", "decentlam", "push_pull"}) {
    CAPTURE(algorithm);
    int ran = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(seed);
      Scenario scenario = scenario_of_seed(seed, "swarm");
      scenario.algorithm = algorithm;
      scenario.codec = "none";
      if (!build_protocol(scenario).ok()) continue;
      const std::vector<std::string> violations = simulate(scenario).report.violations;
      CAPTURE((violations.empty() ? "" : violations.front()));
      CHECK(violations.empty());
      ++ran;
    }
    CHECK(ran >= 5);
  }
}

TEST_CASE("the oracle detects a wrong momentum, and a model that is pulled with other weights") {
  for (const char* algorithm : {"dmsgd", "decentlam"}) {
    CAPTURE(algorithm);
    const Scenario scenario = restoring(algorithm, {"restart process=2 at=0.2 lasts=0.1"});
    CHECK(checked_after(scenario, [](Trace&) {}).ok());
    CHECK(!checked_after(scenario, [](Trace& trace) {
             trace.incarnations[0].rounds[5].end[1][0] += 1e-2F;
             trace.incarnations[0].rounds[6].begin[1][0] += 1e-2F;
           }).ok());
  }
  Scenario star = ring("push_pull", {"crash process=2 at=0.2"});
  star.topology = "star";
  CHECK(checked_after(star, [](Trace&) {}).ok());
  CHECK(violates(
      checked_after(star, [](Trace& trace) { trace.incarnations[0].rounds[5].end[0][1] += 1e-4F; }),
      "replay"));
}

TEST_CASE("every family of faults has its effect, and is tolerated") {
  for (const FaultSpec& spec : fault_specs()) {
    if (is_of_open_run(spec.kind)) continue;  // participants_test.cpp
    CAPTURE(spec.name);
    Fault fault{.kind = spec.kind,
                .at = 0.2,
                .lasts = spec.lasts ? 3.0 : 0,
                .process = 1,
                .other = spec.other ? 2 : 0,
                .amount = spec.amount ? 0.3 : 0};
    if (spec.kind == FaultKind::slow) fault.amount = 4;
    if (spec.kind == FaultKind::slow_reader) fault.amount = 2000;
    Scenario scenario = ring("dpsgd", {to_string(fault)});
    const Outcome outcome = simulate(scenario);
    CHECK(outcome.report.violations == std::vector<std::string>{});
    using enum FaultKind;
    const auto tolerated = {slow,  delay,        clog,       slow_reader,
                            clock, failed_write, torn_write, interrupt_all};
    CHECK((outcome.losses > 0) == (std::ranges::find(tolerated, spec.kind) == tolerated.end()));
    scenario.faults.clear();
    CHECK(simulate(scenario).hash != outcome.hash);
  }
}

TEST_CASE("a silence shorter than the failure timeout, and a longer one") {
  CHECK(simulate(ring("dpsgd", {"pause process=1 at=0.2 lasts=1.5"})).losses == 0);
  CHECK(simulate(ring("dpsgd", {"pause process=1 at=0.2 lasts=2.5"})).losses == 4);
  CHECK(simulate(ring("dpsgd", {"stall process=1 other=2 at=0.2 lasts=1.5"})).losses == 0);
  CHECK(simulate(ring("dpsgd", {"stall process=1 other=2 at=0.2 lasts=2.5"})).losses == 2);
}

TEST_CASE("once a silent peer is lost, the others' rounds take as long as before") {
  for (const char* policy : {"sync", "deadline", "stale", "async"}) {
    CAPTURE(policy);
    const Trace trace = without_peer_2(policy);
    for (const Incarnation& incarnation : trace.incarnations) {
      if (incarnation.peer == 2) continue;
      CAPTURE(incarnation.peer);
      REQUIRE(incarnation.finished);
      /// The mean time of the rounds that begin between two times.
      const auto round_time = [&](Time from, Time to) {
        std::vector<Time> began;
        for (const RoundRecord& record : incarnation.rounds)
          if (record.began >= from && record.began < to) began.push_back(record.began);
        REQUIRE(began.size() > 10);
        return std::chrono::duration<double>(began.back() - began.front()).count() /
               static_cast<double>(began.size() - 1);
      };
      CHECK(round_time(850ms, trace.end) <= 1.1 * round_time(50ms, 300ms));
    }
  }
}

TEST_CASE("deadline: peers that fell out of step when a peer was lost are in step again") {
  const Trace trace = without_peer_2("deadline");
  for (const Incarnation& incarnation : trace.incarnations) {
    if (incarnation.peer == 2) continue;
    CAPTURE(incarnation.peer);
    std::size_t missed = 0;
    for (const RoundRecord& record : incarnation.rounds)
      for (const Deviation& deviation : record.deviations)
        missed += record.round >= 100 && deviation.from != 2 ? 1 : 0;
    CHECK(missed < 10);  // of 100 with each neighbour
    CHECK(incarnation.rounds.size() > 180);
  }
}

TEST_CASE("a scenario can be read back from its text") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Scenario scenario = scenario_of_seed(seed, "swarm");
    const auto read = scenario_of(scenario_parameters().values(scenario));
    REQUIRE(read.ok());
    CHECK(to_text(*read) == to_text(scenario));
    for (const std::string& text : scenario.faults)
      CHECK(to_string(parse_fault(text).value()) == text);
  }
  for (const char* wrong : {"", "flood process=1", "crash", "crash process=1",
                            "crash process=1 at=-1", "crash process=1 at=1 other=2",
                            "pause process=0 at=1 lasts=x", "crash process=1 at=1 at=2"})
    CHECK(!parse_fault(wrong).ok());
  Scenario scenario = ring("dpsgd", {"crash process=6 at=1"});
  CHECK(!scenario_of(scenario_parameters().values(scenario)).ok());
  scenario = ring("allreduce");
  CHECK(!scenario_of(scenario_parameters().values(scenario)).ok());
  scenario = ring("dpsgd");
  scenario.placement = {0, 1, 2, 3, 5, 5};
  CHECK(!scenario_of(scenario_parameters().values(scenario)).ok());
  CHECK(!fault_families({"swarm", "crash"}, 0).ok());
}

TEST_CASE("the oracle detects changed rows, logs and reinitialisations") {
  const Scenario scenario = ring("gradient_tracking", {"crash process=2 at=0.2"});
  CHECK(checked_after(scenario, [](Trace&) {}).ok());
  CHECK(violates(
      checked_after(scenario,
                    [](Trace& trace) { trace.incarnations[0].rounds[5].end[0][1] += 1e-4F; }),
      "replay"));
  CHECK(violates(
      checked_after(scenario,
                    [](Trace& trace) { trace.incarnations[0].rounds[5].begin[1][0] += 1e-4F; }),
      "continuity"));
  CHECK(violates(checked_after(scenario,
                               [](Trace& trace) {
                                 trace.incarnations[4].rounds[7].deviations.push_back(
                                     {7, 5, 0, true, 0, 2});
                               }),
                 "log"));
  CHECK(violates(
      checked_after(scenario,
                    [](Trace& trace) { trace.incarnations[1].rounds[60].deviations.clear(); }),
      "log"));
  CHECK(violates(checked_after(scenario,
                               [](Trace& trace) {
                                 for (RoundRecord& record : trace.incarnations[5].rounds)
                                   record.reinitialised = false;
                               }),
                 "reinitialisation"));
  CHECK(violates(
      checked_after(scenario, [](Trace& trace) { trace.incarnations[3].finished = false; }),
      "termination"));
  CHECK(violates(
      checked_after(scenario,
                    [](Trace& trace) { trace.incarnations[3].most_waiting_bytes = 1 << 20; }),
      "queues"));
  CHECK(violates(
      checked_after(scenario,
                    [](Trace& trace) { trace.errors.push_back("peer 1 broke the protocol"); }),
      "errors"));
}

TEST_CASE("links that are lost are restored, and count again") {
  for (const char* fault :
       {"partition process=2 at=0.2 lasts=0.5", "one_way_partition process=2 at=0.2 lasts=0.5",
        "pause process=1 at=0.2 lasts=0.5", "stall process=1 other=2 at=0.2 lasts=0.5",
        "clog process=1 other=2 at=0.2 lasts=0.8 amount=0.3", "close process=1 other=2 at=0.2",
        "corrupt process=1 other=2 at=0.2", "not_finite process=1 other=2 at=0.2"})
    for (const char* algorithm : {"gradient_tracking", "d2", "dpsgd"}) {
      CAPTURE(std::string(fault));
      CAPTURE(algorithm);
      const Outcome outcome = simulate(restoring(algorithm, {fault}));
      CHECK(outcome.report.violations == std::vector<std::string>{});
      CHECK(outcome.restorations > 0);
      CHECK(outcome.restorations == outcome.losses);
      CHECK(outcome.report.checked.at("liveness") > 0);
    }
}

TEST_CASE("packets that are lost, or travel twice, arrive later and change no bit") {
  Scenario plain = ring("gradient_tracking", {});
  plain.network.bandwidth_mbit_s = 0.05;
  const Protocol protocol = build_protocol(plain).value();
  const Trace trace = run_scenario(plain, protocol);
  for (double NetworkConditions::* part :
       {&NetworkConditions::loss, &NetworkConditions::duplication}) {
    Scenario scenario = plain;
    scenario.network.*part = 0.3;
    const Outcome outcome = simulate(scenario);
    CHECK(outcome.report.violations == std::vector<std::string>{});
    CHECK(outcome.losses == 0);
    const Trace later = run_scenario(scenario, protocol);
    CHECK(later.end > trace.end);
    for (std::size_t k = 0; k < trace.incarnations.size(); ++k)
      CHECK(later.incarnations[k].rounds.back().end == trace.incarnations[k].rounds.back().end);
  }
}

TEST_CASE("processes that end are restarted, and join with a neighbour's rows") {
  for (const char* policy : {"sync", "deadline", "stale", "async"})
    for (const char* fault :
         {"restart process=2 at=0.2 lasts=0.1", "reboot process=2 at=0.2 lasts=0.3"}) {
      CAPTURE(policy);
      CAPTURE(fault);
      Scenario scenario = restoring("dpsgd", {fault});
      scenario.policy = policy;
      const Outcome outcome = simulate(scenario);
      CHECK(outcome.report.violations == std::vector<std::string>{});
      CHECK(outcome.joins == 1);
    }
}

TEST_CASE(
    "rows that go through a codec: after losses and restorations, mixes are checked against the "
    "decoded rows") {
  for (const char* codec : {"bf16", "int8"})
    for (const char* algorithm : {"consensus", "dpsgd", "qg_momentum"}) {
      CAPTURE(codec);
      CAPTURE(algorithm);
      Scenario scenario = restoring(
          algorithm, {"restart process=2 at=0.2 lasts=0.1", "close process=4 other=5 at=0.3"});
      scenario.codec = codec;
      CHECK(simulate(scenario).report.violations == std::vector<std::string>{});
      CHECK(checked_after(scenario, [](Trace&) {}).ok());
      CHECK(violates(
          checked_after(scenario,
                        [](Trace& trace) { trace.incarnations[0].rounds[5].end[0][1] += 1e-4F; }),
          "replay"));
    }
  Scenario scenario = ring("d2");
  scenario.codec = "bf16";
  CHECK(!scenario_of(scenario_parameters().values(scenario)).ok());
}

TEST_CASE("the oracle detects what is wrong with joining peers and restored links") {
  const Scenario scenario = restoring("gradient_tracking", {"restart process=2 at=0.2 lasts=0.1"});
  const std::size_t joiner = 6;  // the incarnations before it are the peers' first ones
  CHECK(checked_after(scenario, [&](Trace& trace) {
          CHECK(trace.incarnations.size() == joiner + 1);
        }).ok());
  CHECK(violates(checked_after(scenario,
                               [&](Trace& trace) {
                                 trace.incarnations[joiner].rounds[0].begin[0][0] += 1e-4F;
                               }),
                 "continuity"));
  CHECK(violates(checked_after(scenario,
                               [&](Trace& trace) {
                                 trace.incarnations[joiner].rounds[0].begin[1][0] += 1e-4F;
                               }),
                 "continuity"));
  CHECK(violates(
      checked_after(scenario, [&](Trace& trace) { ++trace.incarnations[joiner].rounds[0].steps; }),
      "continuity"));
  CHECK(violates(checked_after(scenario,
                               [&](Trace& trace) {
                                 trace.incarnations[joiner].rounds[0].trained[0].kept_steps = 1;
                               }),
                 "continuity"));
  CHECK(violates(checked_after(scenario,
                               [&](Trace& trace) {
                                 RoundRecord& last = trace.incarnations[joiner].rounds.back();
                                 last.deviations.push_back({last.round, 1, 0, true});
                               }),
                 "agreement"));
  CHECK(violates(checked_after(scenario,
                               [&](Trace& trace) {
                                 for (Incarnation& incarnation : trace.incarnations)
                                   for (RoundRecord& record : incarnation.rounds)
                                     record.reinitialised =
                                         record.reinitialised && record.round < 16;
                               }),
                 "reinitialisation"));
  CHECK(violates(checked_after(scenario,
                               [&](Trace& trace) {
                                 trace.incarnations[joiner].rounds.clear(),
                                     trace.incarnations[joiner].finished = false;
                               }),
                 "termination"));
  // Links that are there, and of which both ends say that they do not count.
  CHECK(
      violates(checked_after(scenario,
                             [&](Trace& trace) {
                               for (const std::size_t incarnation : {std::size_t{1}, joiner})
                                 for (RoundRecord& record : trace.incarnations[incarnation].rounds)
                                   for (Channel channel : {0, 1})
                                     if (record.round >= trace.incarnations[joiner].rounds[0].round)
                                       record.deviations.push_back(
                                           {record.round, incarnation == 1 ? 2 : 1, channel, true});
                             }),
               "liveness"));
}

TEST_CASE(
    "clocks that jump ahead lose no link, and change no bit where peers wait for each other") {
  for (const char* policy : {"sync", "deadline", "stale", "async"})
    for (const double jump : {0.01, 1.0, 100.0}) {
      CAPTURE(policy);
      CAPTURE(jump);
      Scenario scenario = ring("dpsgd", {fmt::format("clock process=1 at=0.2 amount={}", jump),
                                         fmt::format("clock process=4 at=0.3 amount={}", jump)});
      scenario.policy = policy;
      const Outcome outcome = simulate(scenario);
      CHECK(outcome.report.violations == std::vector<std::string>{});
      CHECK(outcome.losses == 0);
      CHECK(outcome.report.checked.contains("bits") == (scenario.policy == "sync"));
    }
}

TEST_CASE("the oracle detects wrong states on a disk") {
  const Scenario scenario = restoring("gradient_tracking", {"restart process=2 at=0.5 lasts=0.1"});
  CHECK(checked_after(scenario, [](Trace& trace) {
          REQUIRE(trace.disks.size() == 2);  // when it was started again, and in the end
          CHECK(trace.disks[0].acknowledged > 0);
          CHECK(trace.disks[1].acknowledged > trace.disks[0].acknowledged);
        }).ok());
  CHECK(violates(checked_after(scenario, [](Trace& trace) { trace.disks[0].acknowledged += 10; }),
                 "durability"));
  CHECK(violates(checked_after(scenario, [](Trace& trace) { trace.disks[1].found.clear(); }),
                 "durability"));
  CHECK(violates(
      checked_after(scenario, [](Trace& trace) { trace.disks[0].found[0].rows[1][0] += 1e-4F; }),
      "durability"));
  CHECK(violates(checked_after(scenario, [](Trace& trace) { trace.disks[0].found[0].peer = 3; }),
                 "durability"));
}

TEST_CASE("a scenario that fails is shrunk, as long as it fails") {
  Scenario scenario = ring(
      "gradient_tracking",
      {"pause process=3 at=0.1 lasts=0.2", "crash process=2 at=0.2", "slow process=1 amount=3"});
  scenario.network.jitter_ms = 3;
  const auto loses = [](const Scenario& candidate) { return simulate(candidate).losses > 0; };
  const Scenario small = shrink(scenario, loses);
  CHECK(loses(small));
  CHECK(small.faults.size() == 1);
  CHECK(small.peers <= 3);
  CHECK(small.network.jitter_ms == 0);
  CHECK(small.length == 1);
  CHECK(small.algorithm == "consensus");
}
