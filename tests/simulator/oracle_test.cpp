// The simulator's oracle: each property that it holds runs to is seen to fail where a trace, sound
// before, was tampered with.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tests/simulator/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::sim;

namespace {

/// Of every life that did its last round, `change` of that round.
template <class Change>
auto at_the_end(Change change) {
  return [change](Trace& trace) {
    for (Life& life : trace.lives)
      if (life.finished) change(life, life.rounds.back());
  };
}

}  // namespace

TEST_CASE("the oracle sees sums that are not what they are worth") {
  for (const char* algorithm : {"gradient_tracking", "d2", "extra", "push_sum"}) {
    CAPTURE(algorithm);
    const Scenario scenario = ring(algorithm);
    CHECK(judged(scenario, [](Trace&) {}).checked.at("sums") > 0);
    const auto tamper = [](Trace& trace) { trace.lives[0].rounds.back().end[1].back() += 0.01F; };
    CHECK(violates(judged(scenario, tamper), "sums"));
  }
}

TEST_CASE("the oracle sees parts that have not come to where they should") {
  // All rows are as far off, so nobody is further from the others.
  const auto away = at_the_end([](Life&, RoundRecord& last) { last.end[0][0] += 1; });
  for (const char* algorithm : {"gradient_tracking", "d2", "extra"}) {
    CAPTURE(algorithm);
    Scenario scenario = ring(algorithm);
    scenario.rounds = 300;
    CHECK(judged(scenario, [](Trace&) {}).checked.at("optimum") == 1);
    CHECK(violates(judged(scenario, away), "optimum"));
  }
  const Scenario descends = ring("dpsgd", {"crash process=2 at=0.1"});
  CHECK(judged(descends, [](Trace&) {}).checked.at("descent") == 1);
  CHECK(violates(judged(descends, away), "descent"));
  for (const char* fault : {"crash process=2 at=0.1", "close process=1 other=2 at=0.1"}) {
    CAPTURE(std::string(fault));
    const Scenario agrees = returning("consensus", {fault});
    CHECK(judged(agrees, [](Trace&) {}).checked.at("consensus") == 1);
    CHECK(!violates(judged(agrees, away), "consensus"));
    CHECK(violates(
        judged(agrees, [](Trace& trace) { trace.lives[0].rounds.back().end[0][0] += 0.01F; }),
        "consensus"));
  }
}

TEST_CASE("the oracle sees peers that hold others for within reach who are not") {
  const Scenario scenario = returning("dpsgd", {"crash process=2 at=0.2"});
  CHECK(judged(scenario, [](Trace&) {}).checked.at("reach") > 0);
  CHECK(violates(
      judged(scenario, at_the_end([](Life&, RoundRecord& last) { last.reachable.push_back(2); })),
      "reach"));
  CHECK(violates(
      judged(scenario, at_the_end([](Life&, RoundRecord& last) { last.reachable.pop_back(); })),
      "reach"));
}

TEST_CASE(
    "the oracle sees a second run that goes another way, and rows of one process that are others") {
  // The disk works in the first run, and kills its process in the second.
  const Scenario scenario = returning("dpsgd", {"restart process=2 at=0.5 lasts=0.1"});
  const auto storage_of_run = [](int struck) {
    return [struck, run = 0](const Scenario&) mutable {
      auto storage = std::make_unique<PerfectStorage>();
      if (run++ == struck)
        storage->strike(1, DiskFault::kill, 0), storage->strike(2, DiskFault::kill, 0);
      return storage;
    };
  };
  CHECK(simulate(scenario, storage_of_run(-1)).verdict.ok());
  CHECK(violates(simulate(scenario, storage_of_run(1)).verdict, "repeats"));

  const Scenario calm = ring("dpsgd");
  const Parts parts = build(calm).value();
  Trace trace = run_scenario(calm, parts);
  Verdict same, other;
  judge_again(calm, parts, trace, trace, same);
  CHECK(same.ok());
  CHECK(same.checked.at("bits") == 1);
  trace.lives[3].rounds.back().end[0][2] *= 1.0000001F;
  judge_again(calm, parts, trace, trace, other);
  CHECK(violates(other, "bits"));
}

TEST_CASE("the oracle sees rows whose sum, or whose mean over all rounds, is not what it was") {
  for (const char* policy : {"sync", "deadline"})
    for (const char* algorithm : {"consensus", "dpsgd", "gradient_tracking"}) {
      CAPTURE(policy);
      CAPTURE(algorithm);
      Scenario scenario = ring(algorithm, {"close process=1 other=2 at=0.2"});
      scenario.policy = policy;
      const Verdict sound = judged(scenario, [](Trace&) {});
      CHECK(sound.ok());
      CHECK(sound.checked.at("mean") > 0);
      CHECK(sound.checked.at("drift") > 0);
      CHECK(violates(
          judged(scenario, [](Trace& trace) { trace.lives[0].rounds[5].end[0][1] += 1e-3F; }),
          "mean"));
      // More than a link that breaks can do to a mean.
      CHECK(violates(
          judged(scenario, [](Trace& trace) { trace.lives[0].rounds[5].end[0][1] += 100; }),
          "drift"));
    }
  // An edge that counts at one end, and whose link is there.
  const auto one_sided = [](Trace& trace) {
    trace.lives[4].rounds[7].deviations.push_back({7, 5, 0, true});
  };
  CHECK(violates(judged(ring("consensus"), one_sided), "drift"));
  CHECK(violates(judged(ring("consensus"), one_sided), "mean"));
  // One that does so in the round after the loss too: the end that was told last uses a row that it
  // cannot have.
  const Scenario breaks = ring("consensus", {"close process=1 other=2 at=0.2"});
  const auto once_more = [](Trace& trace) {
    const auto lost =
        std::ranges::find_if(trace.links, [](const LinkRecord& link) { return !link.back; });
    REQUIRE(lost != trace.links.end());
    for (RoundRecord& record : trace.lives[static_cast<std::size_t>(lost->life)].rounds)
      if (record.round == lost->round + 1)
        std::erase_if(record.deviations,
                      [&](const Deviation& deviation) { return deviation.from == lost->other; });
  };
  CHECK(violates(judged(breaks, once_more), "drift"));
}

TEST_CASE("the oracle sees links that are there, and are not used again") {
  Scenario scenario = returning("dpsgd", {"close process=1 other=2 at=0.2"});
  /// What two peers say of each other's rows: that there was none.
  const auto nothing_between = [](Trace& trace, int a, int b) {
    for (const auto& [here, there] : {std::pair(a, b), std::pair(b, a)})
      for (RoundRecord& record : trace.lives[static_cast<std::size_t>(here)].rounds) {
        std::erase_if(record.deviations, [other = there](const Deviation& deviation) {
          return deviation.from == other;
        });
        record.deviations.push_back({record.round, there, 0, true});
      }
  };
  for (const char* policy : {"async", "deadline"}) {
    CAPTURE(policy);
    scenario.policy = policy;
    const Verdict sound = judged(scenario, [](Trace&) {});
    CHECK(sound.ok());
    CHECK(sound.checked.at("reuse") > 0);
  }
  const auto never = [&](Trace& trace) {
    for (int a = 0; a < 6; ++a) nothing_between(trace, a, (a + 1) % 6);
  };
  CHECK(violates(judged(scenario, never), "reuse"));
  scenario.policy = "async";
  CHECK(violates(judged(scenario, [&](Trace& trace) { nothing_between(trace, 1, 2); }), "reuse"));
  // A row that had come before the link was lost is none that was sent since.
  CHECK(violates(judged(scenario,
                        [](Trace& trace) {
                          RoundRecord& last = trace.lives[1].rounds.back();
                          std::erase_if(last.deviations, [](const Deviation& deviation) {
                            return deviation.from == 2;
                          });
                          last.deviations.push_back({last.round, 2, 0, false, 3});
                        }),
                 "reuse"));
}

TEST_CASE("the oracle sees peers that are done too late") {
  for (const char* policy : {"sync", "deadline", "stale", "async"}) {
    CAPTURE(policy);
    Scenario scenario = returning("dpsgd", {"pause process=1 at=0.2 lasts=0.5"});
    scenario.policy = policy;
    const Time limit = time_limit(scenario, build(scenario).value());
    CHECK(judged(scenario, [&](Trace& trace) {
            CHECK(8 * trace.lives[3].finished_at > limit);
          }).ok());
    CHECK(violates(
        judged(scenario, [&](Trace& trace) { trace.lives[3].finished_at = limit + Time(1); }),
        "progress"));
  }
}

TEST_CASE("the oracle sees queues that are longer than a row, at senders and at receivers") {
  for (const char* policy : {"sync", "deadline", "stale", "async"}) {
    CAPTURE(policy);
    Scenario scenario = ring("dpsgd");
    scenario.policy = policy;
    scenario.buffer_chunks = 1;
    const auto length = static_cast<std::uint64_t>(scenario.length);
    CHECK(
        judged(scenario, [&](Trace& trace) { CHECK(trace.most_lent.at({1, 2}) == length); }).ok());
    CHECK(violates(judged(scenario, [](Trace& trace) { ++trace.most_lent.at({1, 2}); }), "queues"));
    CHECK(violates(
        judged(scenario, [](Trace& trace) { trace.lives[3].most_waiting_bytes = 1 << 20; }),
        "queues"));
  }
  CHECK(violates(judged(ring("ad_psgd"), [](Trace& trace) { trace.most_lent[{1, 2}] = 10; }),
                 "queues"));
}
