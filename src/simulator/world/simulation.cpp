#include "simulator/world/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/oracle/bounds.hpp"
#include "simulator/world/world.hpp"

namespace gossamer::simulator {
namespace {

/// The same network where no step and no message takes time, and all peers share a process.
Scenario in_one_process(Scenario scenario) {
  scenario.placement.assign(static_cast<std::size_t>(scenario.peers), 0);
  scenario.faults.clear();
  scenario.steps.step_ms = scenario.steps.step_spread = 0;
  scenario.chunk_values = scenario.length;
  return scenario;
}

std::vector<FloatRow> final_rows(const Trace& trace) {
  std::vector<FloatRow> rows;
  for (const Incarnation& incarnation : trace.incarnations)
    if (!incarnation.rounds.empty())
      for (const FloatRow& row : incarnation.rounds.back().end) rows.push_back(row);
  return rows;
}

}  // namespace

Trace run_scenario(const Scenario& scenario, const Protocol& protocol, const MakeStorage& storage) {
  World world(scenario, protocol, storage ? storage(scenario) : std::make_unique<PerfectStorage>());
  return world.run(run_limit(scenario, protocol));
}

Outcome simulate(const Scenario& scenario, const MakeStorage& storage) {
  const Protocol protocol = build_protocol(scenario).value();
  const Trace trace = run_scenario(scenario, protocol, storage);
  Outcome outcome;
  outcome.report = check_trace(scenario, protocol, trace);
  outcome.hash = trace.hash;
  outcome.virtual_seconds = seconds(trace.end);
  outcome.events = trace.events;
  outcome.event_log = trace.event_log;
  for (const LinkRecord& link : trace.links)
    ++(link.restored ? outcome.restorations : outcome.losses);
  for (const Incarnation& incarnation : trace.incarnations)
    outcome.joins += incarnation.joins && !incarnation.rounds.empty() ? 1 : 0;
  check_further_runs(scenario, protocol, trace, run_scenario(scenario, protocol, storage),
                     outcome.report);
  return outcome;
}

void check_further_runs(const Scenario& scenario, const Protocol& protocol, const Trace& trace,
                        const Trace& second, CheckReport& report) {
  const auto expect = [&](bool holds, const char* property, const std::string& sentence) {
    ++report.checked[property];
    if (!holds) report.violations.push_back(fmt::format("{}: {}", property, sentence));
  };
  expect(second.hash == trace.hash, "determinism",
         fmt::format("a second run gives the trace {:016x} instead of {:016x}", second.hash,
                     trace.hash));
  const bool undisturbed =
      trace.links.empty() && std::ranges::all_of(trace.incarnations, [](const Incarnation& each) {
        return each.alive && each.finished;
      });
  if (protocol.policy == Policy::sync && undisturbed &&
      protocol.algorithm->requirements().lockstep) {
    const Scenario single = in_one_process(scenario);
    expect(final_rows(run_scenario(single, protocol)) == final_rows(trace), "bits",
           "the rows differ from those of the same network in one process");
  }
}

}  // namespace gossamer::simulator
