// The simulator with asynchronous algorithms: push-sum and AD-PSGD.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tests/simulator/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::simulator;

/// Rows of asynchronous push-sum.
enum : std::size_t { kSum = 1, kGiven = 3, kFirstUsed = 4 };

TEST_CASE(
    "asynchronous push-sum: sums are what was kept and what arrived, whatever links are lost and "
    "restored") {
  for (const char* policy : {"sync", "stale", "async"})
    for (const std::vector<std::string>& faults : std::vector<std::vector<std::string>>{
             {},
             {"pause process=1 at=0.1 lasts=0.1"},
             {"restart process=2 at=0.2 lasts=0.1", "close process=4 other=5 at=0.3"}}) {
      CAPTURE(policy);
      CAPTURE(faults.size());
      Scenario scenario = restoring("async_push_sum", faults);
      scenario.policy = policy;
      const Outcome outcome = simulate(scenario);
      CHECK(outcome.report.violations == std::vector<std::string>{});
      CHECK(outcome.report.checked.at("replay") > 0);
      CHECK(outcome.report.checked.contains("totals") == (faults.size() < 2));
      CHECK(outcome.joins == (faults.size() < 2 ? 0 : 1));
    }
  // Links that break, for the first time or once more, and may be restored while their ends wait
  // for a third peer: what had arrived whole counts as it did on arrival, and nothing more is
  // waited for.
  const std::string held_up = "pause process=1 at=0.25 lasts=0.19",
                    before = "close process=3 other=0 at=0.1";
  for (const std::vector<std::string>& faults : std::vector<std::vector<std::string>>{
           {held_up, "close process=3 other=0 at=0.25"},
           {held_up, "close process=0 other=3 at=0.28"},
           {held_up, before, "close process=0 other=3 at=0.28"},
           {held_up, before, "crash process=0 at=0.28"},
           {held_up, before, "reboot process=0 at=0.28 lasts=0.1"}}) {
    CAPTURE(faults.back());
    Scenario waiting = restoring("async_push_sum", faults);
    waiting.topology = "complete";
    const Outcome outcome = simulate(waiting);
    CHECK(outcome.report.violations == std::vector<std::string>{});
    CHECK(outcome.restorations > 0);
  }
  Scenario scenario = ring("async_push_sum");
  scenario.policy = "async";
  for (const std::size_t row :
       {std::size_t{0}, std::size_t{kSum}, std::size_t{kGiven}, std::size_t{kFirstUsed}}) {
    CAPTURE(row);
    CHECK(violates(checked_after(scenario,
                                 [&](Trace& trace) {
                                   trace.incarnations[0].rounds.back().end[row][1] += 1e-3F;
                                 }),
                   "replay"));
  }
  for (const std::size_t row : {std::size_t{kSum}, std::size_t{kGiven}, std::size_t{kFirstUsed}}) {
    CAPTURE(row);
    const auto tamper = [&](Trace& trace) {
      for (RoundRecord& record : trace.incarnations[0].rounds) record.end[row][1] += 1;
    };
    CHECK(violates(checked_after(scenario, tamper), "totals"));
  }
}

TEST_CASE(
    "asynchronous push-sum: however often links break, weights do not fall, nor do steps γ/w "
    "grow") {
  for (const char* policy : {"sync", "stale", "async"}) {
    CAPTURE(std::string(policy));
    std::vector<std::string> faults;
    for (int k = 0; k < 8; ++k)
      faults.push_back(fmt::format("partition process={} at={} lasts=0.3", k % 5, 0.1 + 1.2 * k));
    Scenario scenario = restoring("async_push_sum", faults);
    scenario.topology = "complete";
    scenario.policy = policy;
    scenario.rounds = 2000;  // under `async` they are short, and are to last longer than the faults
    const Trace trace = run_scenario(scenario, build_protocol(scenario).value());
    CHECK(std::ranges::count(trace.links, true, &LinkRecord::restored) >= 48);
    constexpr int kLast = 200;  // in one round most of it may be under way
    double total = 0;
    for (const Incarnation& incarnation : trace.incarnations) {
      REQUIRE(incarnation.rounds.size() >= kLast);
      for (auto record = incarnation.rounds.end() - kLast; record != incarnation.rounds.end();
           ++record)
        total += static_cast<double>(record->end[kSum].back()) / kLast;
    }
    CHECK(total > 0.7 * scenario.peers);
  }
}

TEST_CASE(
    "AD-PSGD: averages conserve the sum of the models, whatever is delayed; and a lost link ends "
    "the run") {
  for (const char* fault :
       {"", "pause process=1 at=0.2 lasts=1.5", "stall process=1 other=2 at=0.2 lasts=1.5",
        "slow process=3 amount=8", "delay process=1 other=2 at=0.1 lasts=1 amount=0.3",
        "clock process=4 at=0.2 amount=5"}) {
    CAPTURE(std::string(fault));
    const Scenario scenario =
        ring("ad_psgd", *fault == 0 ? std::vector<std::string>{} : std::vector<std::string>{fault});
    const Outcome outcome = simulate(scenario);
    CHECK(outcome.report.violations == std::vector<std::string>{});
    CHECK(outcome.report.checked.contains("totals"));
    CHECK(outcome.losses == 0);
    CHECK(violates(
        checked_after(scenario,
                      [](Trace& trace) { trace.incarnations[0].rounds.back().end[0][1] += 0.1F; }),
        "totals"));
  }
  for (const char* fault : {"crash process=2 at=0.2", "restart process=2 at=0.2 lasts=0.1",
                            "cut process=2 other=3 at=0.2"}) {
    CAPTURE(std::string(fault));
    const Scenario scenario = ring("ad_psgd", {fault});
    CHECK(simulate(scenario).report.violations == std::vector<std::string>{});
    const Trace trace = run_scenario(scenario, build_protocol(scenario).value());
    CHECK(std::ranges::count(trace.incarnations, false, &Incarnation::finished) >= 2);
    CHECK(std::ranges::all_of(trace.incarnations, [](const Incarnation& incarnation) {
      return incarnation.finished == incarnation.alive;
    }));
  }
}
