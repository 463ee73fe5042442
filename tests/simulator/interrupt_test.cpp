// Processes that are asked to stop: one, which then joins the others again; or all, which resume
// from what they have saved.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "simulator/storage/simulated_disks.hpp"
#include "tests/simulator/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::simulator;

namespace {

/// Six peers in four processes, of which two host two peers.
Scenario network_of(const std::string& policy, const std::string& algorithm,
                    std::vector<std::string> faults) {
  Scenario scenario = restoring(algorithm, std::move(faults));
  scenario.placement = {0, 1, 1, 2, 3, 3};
  scenario.policy = policy;
  scenario.checkpoint_every = 7;
  return scenario;
}

}  // namespace

TEST_CASE("a process that is asked to stop ends after a round, and joins again") {
  for (const char* policy : {"sync", "deadline", "stale", "async"})
    for (const int process : {0, 1}) {
      CAPTURE(policy);
      CAPTURE(process);
      const Outcome outcome = simulate(network_of(
          policy, "dpsgd", {fmt::format("interrupt process={} at=0.3 lasts=0.2", process)}));
      CHECK(outcome.report.violations == std::vector<std::string>{});
      CHECK(outcome.stops == 1);
      CHECK(outcome.joins == (process == 0 ? 1 : 2));
      CHECK(outcome.report.checked.at("recording") > 0);
    }
}

TEST_CASE(
    "a network that is stopped as a whole resumes from the newest round that all have saved") {
  auto disks = SimulatedDisks::create();
  REQUIRE(disks.ok());
  for (const char* policy : {"sync", "deadline", "stale", "async"})
    for (const char* algorithm : {"dpsgd", "qg_momentum"}) {
      CAPTURE(policy);
      CAPTURE(algorithm);
      const Scenario scenario =
          network_of(policy, algorithm, {"interrupt_all process=0 at=0.6 lasts=0.2"});
      const Outcome outcome = simulate(scenario, (*disks)->storage());
      CHECK(outcome.report.violations == std::vector<std::string>{});
      CHECK(outcome.stops == 4);
      CHECK(outcome.resumptions == 1);
      const std::vector<Trace> parts =
          run_parts(scenario, build_protocol(scenario).value(), (*disks)->storage());
      REQUIRE(parts.size() == 2);
      REQUIRE(parts[1].resumption);
      CHECK(parts[1].resumption->round > 0);
      // The log of a peer that joins the others lacks the rounds before.
      if (!parts[1].resumption->without.empty()) continue;
      for (const std::vector<LogRecord>& log : parts[1].logs)
        CHECK(log.size() % (static_cast<std::size_t>(scenario.rounds) + 1) == 0);
    }
}

TEST_CASE("a run in one process that is stopped and resumed has the bits of one that was not") {
  for (const char* algorithm : {"dpsgd", "gradient_tracking", "d2", "extra", "push_sum"}) {
    CAPTURE(algorithm);
    Scenario scenario = ring(algorithm, {"interrupt_all process=0 at=0.2 lasts=0.1"});
    scenario.placement.assign(6, 0);
    const Outcome outcome = simulate(scenario);
    CHECK(outcome.report.violations == std::vector<std::string>{});
    CHECK(outcome.resumptions == 1);
    CHECK(outcome.report.checked.at("bits") == 1);
  }
}

TEST_CASE("peers whose disk failed before the network was stopped join the others") {
  auto disks = SimulatedDisks::create();
  REQUIRE(disks.ok());
  const Outcome outcome = simulate(network_of("sync", "dpsgd",
                                              {"killed_write process=1 at=0 lasts=2 amount=3",
                                               "interrupt_all process=0 at=0.6 lasts=0.2"}),
                                   (*disks)->storage());
  CHECK(outcome.report.violations == std::vector<std::string>{});
  CHECK(outcome.resumptions == 1);
  CHECK(outcome.joins == 2);
}

TEST_CASE("the oracle detects records that are repeated or missing, and rows that were not saved") {
  const Scenario scenario =
      network_of("sync", "dpsgd", {"interrupt_all process=0 at=0.6 lasts=0.2"});
  const auto checked = [&scenario](std::size_t part, auto tamper) {
    return checked_part_after(scenario, part, tamper);
  };
  CHECK(checked(0, [](Trace&) {}).ok());
  CHECK(checked(1, [](Trace&) {}).ok());
  CHECK(violates(checked(1, [](Trace& trace) { trace.logs[1].push_back(trace.logs[1].back()); }),
                 "recording"));
  CHECK(violates(checked(1, [](Trace& trace) { trace.logs[1].erase(trace.logs[1].begin() + 9); }),
                 "recording"));
  CHECK(violates(checked(1, [](Trace& trace) { trace.incarnations[2].recorded.pop_back(); }),
                 "recording"));
  CHECK(
      violates(checked(0, [](Trace& trace) { trace.stops[1].rounds.front() += 1; }), "recording"));
  CHECK(violates(checked(0, [](Trace& trace) { trace.stops[0].acknowledged -= 1; }), "recording"));
  CHECK(violates(checked(1, [](Trace& trace) { trace.resumption->states[3].rows[0][0] += 1; }),
                 "continuity"));
  CHECK(violates(checked(1, [](Trace& trace) { trace.resumption->round += 1; }), "continuity"));
}
