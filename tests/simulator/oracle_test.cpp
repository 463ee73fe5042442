// The simulator's oracle: each property that it checks fails on a trace that was sound before it
// was tampered with.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tests/simulator/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::simulator;

namespace {

/// `change` of the last round of every incarnation that finished.
template <class Change>
auto at_the_end(Change change) {
  return [change](Trace& trace) {
    for (Incarnation& incarnation : trace.incarnations)
      if (incarnation.finished) change(incarnation, incarnation.rounds.back());
  };
}

}  // namespace

TEST_CASE("the oracle detects wrong conserved sums") {
  for (const char* algorithm : {"gradient_tracking", "d2", "extra", "push_sum", "push_pull"}) {
    CAPTURE(algorithm);
    const Scenario scenario = ring(algorithm);
    CHECK(checked_after(scenario, [](Trace&) {}).checked.at("sums") > 0);
    const auto tamper = [](Trace& trace) {
      trace.incarnations[0].rounds.back().end[1].back() += 0.01F;
    };
    CHECK(violates(checked_after(scenario, tamper), "sums"));
  }
}

TEST_CASE("the oracle sees protocol that have not come to where they should") {
  // All rows are off by the same amount, so the peers still agree.
  const auto away = at_the_end([](Incarnation&, RoundRecord& last) { last.end[0][0] += 1; });
  for (const char* algorithm : {"gradient_tracking", "d2", "extra"}) {
    CAPTURE(algorithm);
    Scenario scenario = ring(algorithm);
    scenario.rounds = 300;
    CHECK(checked_after(scenario, [](Trace&) {}).checked.at("optimum") == 1);
    CHECK(violates(checked_after(scenario, away), "optimum"));
  }
  const Scenario descends = ring("dpsgd", {"crash process=2 at=0.1"});
  CHECK(checked_after(descends, [](Trace&) {}).checked.at("descent") == 1);
  CHECK(violates(checked_after(descends, away), "descent"));
  for (const char* fault : {"crash process=2 at=0.1", "close process=1 other=2 at=0.1"}) {
    CAPTURE(std::string(fault));
    const Scenario agrees = restoring("consensus", {fault});
    CHECK(checked_after(agrees, [](Trace&) {}).checked.at("consensus") == 1);
    CHECK(!violates(checked_after(agrees, away), "consensus"));
    CHECK(violates(
        checked_after(agrees,
                      [](Trace& trace) { trace.incarnations[0].rounds.back().end[0][0] += 0.01F; }),
        "consensus"));
  }
}

TEST_CASE("the oracle detects wrong views of the reachable peers") {
  const Scenario scenario = restoring("dpsgd", {"crash process=2 at=0.2"});
  CHECK(checked_after(scenario, [](Trace&) {}).checked.at("reachability") > 0);
  CHECK(violates(checked_after(scenario, at_the_end([](Incarnation&, RoundRecord& last) {
                                 last.reachable.push_back(2);
                               })),
                 "reachability"));
  CHECK(violates(checked_after(scenario, at_the_end([](Incarnation&, RoundRecord& last) {
                                 last.reachable.pop_back();
                               })),
                 "reachability"));
}

TEST_CASE(
    "the oracle detects a second run that differs, and rows that differ from those of one "
    "process") {
  // The disk works in the first run, and kills its process in the second.
  const Scenario scenario = restoring("dpsgd", {"restart process=2 at=0.5 lasts=0.1"});
  const auto storage_of_run = [](int struck) {
    return [struck, run = 0](const Scenario& each) mutable {
      auto storage = std::make_unique<PerfectStorage>(topology::Participants(each.peers));
      if (run++ == struck)
        storage->inject(1, DiskFault::kill, 0), storage->inject(2, DiskFault::kill, 0);
      return storage;
    };
  };
  CHECK(simulate(scenario, storage_of_run(-1)).report.ok());
  CHECK(violates(simulate(scenario, storage_of_run(1)).report, "determinism"));

  const Scenario calm = ring("dpsgd");
  const Protocol protocol = build_protocol(calm).value();
  Trace trace = run_scenario(calm, protocol);
  CheckReport same, other;
  check_further_runs(calm, protocol, {trace}, {trace}, same);
  CHECK(same.ok());
  CHECK(same.checked.at("bits") == 1);
  trace.incarnations[3].rounds.back().end[0][2] *= 1.0000001F;
  check_further_runs(calm, protocol, {trace}, {trace}, other);
  CHECK(violates(other, "bits"));
}

TEST_CASE("the oracle detects rows whose sum, or whose mean over all rounds, has changed") {
  for (const char* policy : {"sync", "deadline"})
    for (const char* algorithm : {"consensus", "dpsgd", "gradient_tracking"}) {
      CAPTURE(policy);
      CAPTURE(algorithm);
      Scenario scenario = ring(algorithm, {"close process=1 other=2 at=0.2"});
      scenario.policy = policy;
      const CheckReport sound = checked_after(scenario, [](Trace&) {});
      CHECK(sound.ok());
      CHECK(sound.checked.at("mean") > 0);
      CHECK(sound.checked.at("drift") > 0);
      CHECK(violates(
          checked_after(scenario,
                        [](Trace& trace) { trace.incarnations[0].rounds[5].end[0][1] += 1e-3F; }),
          "mean"));
      // More than a broken link can move a mean.
      CHECK(violates(
          checked_after(scenario,
                        [](Trace& trace) { trace.incarnations[0].rounds[5].end[0][1] += 100; }),
          "drift"));
    }
  // An edge that counts at one end, though its link is up.
  const auto one_sided = [](Trace& trace) {
    trace.incarnations[4].rounds[7].deviations.push_back({7, 5, 0, true});
  };
  CHECK(violates(checked_after(ring("consensus"), one_sided), "drift"));
  CHECK(violates(checked_after(ring("consensus"), one_sided), "mean"));
  // An edge that does so in the round after the loss too: the end that was notified last uses a row
  // that it cannot have.
  const Scenario breaks = ring("consensus", {"close process=1 other=2 at=0.2"});
  const auto once_more = [](Trace& trace) {
    const auto lost =
        std::ranges::find_if(trace.links, [](const LinkRecord& link) { return !link.restored; });
    REQUIRE(lost != trace.links.end());
    for (RoundRecord& record :
         trace.incarnations[static_cast<std::size_t>(lost->incarnation)].rounds)
      if (record.round == lost->round + 1)
        std::erase_if(record.deviations,
                      [&](const Deviation& deviation) { return deviation.from == lost->other; });
  };
  CHECK(violates(checked_after(breaks, once_more), "drift"));
}

TEST_CASE("the oracle detects links that are up and not used again") {
  Scenario scenario = restoring("dpsgd", {"close process=1 other=2 at=0.2"});
  /// Two peers log of each other that no row arrived.
  const auto nothing_between = [](Trace& trace, int a, int b) {
    for (const auto& [here, there] : {std::pair(a, b), std::pair(b, a)})
      for (RoundRecord& record : trace.incarnations[static_cast<std::size_t>(here)].rounds) {
        std::erase_if(record.deviations, [other = there](const Deviation& deviation) {
          return deviation.from == other;
        });
        record.deviations.push_back({record.round, there, 0, true});
      }
  };
  for (const char* policy : {"async", "deadline"}) {
    CAPTURE(policy);
    scenario.policy = policy;
    const CheckReport sound = checked_after(scenario, [](Trace&) {});
    CHECK(sound.ok());
    CHECK(sound.checked.at("freshness") > 0);
  }
  const auto never = [&](Trace& trace) {
    for (int a = 0; a < 6; ++a) nothing_between(trace, a, (a + 1) % 6);
  };
  CHECK(violates(checked_after(scenario, never), "freshness"));
  scenario.policy = "async";
  CHECK(violates(checked_after(scenario, [&](Trace& trace) { nothing_between(trace, 1, 2); }),
                 "freshness"));
  // A row that had arrived before the link was lost was not sent since.
  CHECK(violates(checked_after(scenario,
                               [](Trace& trace) {
                                 RoundRecord& last = trace.incarnations[1].rounds.back();
                                 std::erase_if(last.deviations, [](const Deviation& deviation) {
                                   return deviation.from == 2;
                                 });
                                 last.deviations.push_back({last.round, 2, 0, false, 3});
                               }),
                 "freshness"));
}

TEST_CASE("the oracle detects peers that are done too late") {
  for (const char* policy : {"sync", "deadline", "stale", "async"}) {
    CAPTURE(policy);
    Scenario scenario = restoring("dpsgd", {"pause process=1 at=0.2 lasts=0.5"});
    scenario.policy = policy;
    const Time limit = time_limit(scenario, build_protocol(scenario).value());
    CHECK(checked_after(scenario, [&](Trace& trace) {
            CHECK(8 * trace.incarnations[3].finished_at > limit);
          }).ok());
    CHECK(violates(
        checked_after(scenario,
                      [&](Trace& trace) { trace.incarnations[3].finished_at = limit + Time(1); }),
        "termination"));
  }
}

TEST_CASE("the oracle detects queues that are too long, at senders and at receivers") {
  for (const char* policy : {"sync", "deadline", "stale", "async"}) {
    CAPTURE(policy);
    Scenario scenario = ring("dpsgd");
    scenario.policy = policy;
    scenario.network.buffer_chunks = 1;
    const auto length = static_cast<std::uint64_t>(scenario.length);
    CHECK(checked_after(scenario, [&](Trace& trace) {
            CHECK(trace.most_lent.at({1, 2}) == length);
          }).ok());
    // Under sync also the row of the round before, which a slow neighbour may still read.
    const std::uint64_t most = scenario.policy == "sync" ? 2 * length : length;
    CHECK(violates(
        checked_after(scenario, [&](Trace& trace) { trace.most_lent.at({1, 2}) = most + 1; }),
        "queues"));
    CHECK(violates(
        checked_after(scenario,
                      [](Trace& trace) { trace.incarnations[3].most_waiting_bytes = 1 << 20; }),
        "queues"));
  }
  CHECK(violates(checked_after(ring("ad_psgd"), [](Trace& trace) { trace.most_lent[{1, 2}] = 10; }),
                 "queues"));
}
