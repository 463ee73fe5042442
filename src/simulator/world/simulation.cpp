#include "simulator/world/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.hpp"
#include "simulator/oracle/bounds.hpp"
#include "simulator/oracle/effective_participants.hpp"
#include "simulator/world/resumption.hpp"
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

/// Of the peers that did the last round: those that left before are not in each part of a run that
/// was stopped and resumed.
std::vector<FloatRow> final_rows(const Scenario& scenario, const Trace& trace) {
  std::vector<FloatRow> rows;
  const auto last = static_cast<Round>(scenario.rounds) - 1;
  for (const Incarnation& incarnation : trace.incarnations)
    if (!incarnation.rounds.empty() && incarnation.rounds.back().round == last)
      for (const FloatRow& row : incarnation.rounds.back().end) rows.push_back(row);
  return rows;
}

std::uint64_t hash_of(const std::vector<Trace>& parts) {
  if (parts.size() == 1) return parts.front().hash;
  std::vector<std::uint64_t> hashes;
  for (const Trace& part : parts) hashes.push_back(part.hash);
  return hash64(std::as_bytes(std::span<const std::uint64_t>(hashes)));
}

/// Nothing was lost, and all peers did all rounds, or stopped.
bool is_undisturbed(const Trace& trace) {
  return std::ranges::all_of(trace.links, &LinkRecord::parted) &&
         std::ranges::all_of(trace.incarnations, [](const auto& each) {
           return (each.alive && each.finished) || each.stopped;
         });
}

void add(const CheckReport& part, CheckReport& whole) {
  whole.violations.insert(whole.violations.end(), part.violations.begin(), part.violations.end());
  for (const auto& [property, count] : part.checked) whole.checked[property] += count;
  whole.drift = std::max(whole.drift, part.drift);
  whole.rounding = std::max(whole.rounding, part.rounding);
  whole.one_sided += part.one_sided;
}

}  // namespace

std::vector<Trace> run_parts(const Scenario& scenario, const Protocol& protocol,
                             const MakeStorage& storage) {
  Disks disks(
      storage ? storage(scenario) : std::make_unique<PerfectStorage>(protocol.participants()),
      scenario.processes());
  std::vector<Trace> parts;
  std::optional<Resumption> resumption;
  do {
    const Time begin = resumption ? resumption->at : Time(0);
    World world(scenario, protocol, disks, std::move(resumption));
    world.run(begin + run_limit(scenario, protocol));
    resumption = complete(world);
    parts.push_back(world.recorder().take());
  } while (resumption);
  return parts;
}

Trace run_scenario(const Scenario& scenario, const Protocol& protocol, const MakeStorage& storage) {
  return std::move(run_parts(scenario, protocol, storage).back());
}

Outcome simulate(const Scenario& scenario, const MakeStorage& storage) {
  const Protocol protocol = build_protocol(scenario).value();
  const std::vector<Trace> parts = run_parts(scenario, protocol, storage);
  Outcome outcome;
  outcome.hash = hash_of(parts);
  outcome.virtual_seconds = seconds(parts.back().end);
  for (const Trace& trace : parts) {
    add(check_trace(scenario, protocol, trace), outcome.report);
    outcome.events += trace.events;
    outcome.event_log.insert(outcome.event_log.end(), trace.event_log.begin(),
                             trace.event_log.end());
    for (const LinkRecord& link : trace.links)
      if (!link.parted) ++(link.restored ? outcome.restorations : outcome.losses);
    for (const Incarnation& incarnation : trace.incarnations)
      outcome.joins += incarnation.joins && !incarnation.rounds.empty() ? 1 : 0;
    outcome.stops += trace.stops.size();
    outcome.resumptions += trace.resumption ? 1 : 0;
  }
  check_further_runs(scenario, protocol, parts, run_parts(scenario, protocol, storage),
                     outcome.report);
  return outcome;
}

void check_further_runs(const Scenario& scenario, const Protocol& protocol,
                        const std::vector<Trace>& parts, const std::vector<Trace>& second,
                        CheckReport& report) {
  const auto expect = [&](bool holds, const char* property, const std::string& sentence) {
    ++report.checked[property];
    if (!holds) report.violations.push_back(fmt::format("{}: {}", property, sentence));
  };
  expect(hash_of(second) == hash_of(parts), "determinism",
         fmt::format("a second run gives the trace {:016x} instead of {:016x}", hash_of(second),
                     hash_of(parts)));
  if (protocol.policy == Policy::sync && std::ranges::all_of(parts, is_undisturbed) &&
      protocol.algorithm->requirements().lockstep) {
    const Scenario single = in_one_process(scenario);
    const Trace trace =
        scenario.open ? run_scenario(single, effective_protocol(scenario, parts.back()).protocol)
                      : run_scenario(single, protocol);
    expect(final_rows(single, trace) == final_rows(scenario, parts.back()), "bits",
           "the rows differ from those of the same network in one process");
  }
}

}  // namespace gossamer::simulator
