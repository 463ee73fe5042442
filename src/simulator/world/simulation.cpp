#include "simulator/world/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/world/world.hpp"

namespace gossamer::gossip::sim {
namespace {

/// The same network where nothing takes time and nobody is elsewhere.
Scenario in_one_process(Scenario scenario) {
  scenario.homes.assign(static_cast<std::size_t>(scenario.peers), 0);
  scenario.faults.clear();
  scenario.step_ms = scenario.step_spread = 0;
  scenario.chunk_values = scenario.length;
  return scenario;
}

std::vector<FloatRow> final_rows(const Trace& trace) {
  std::vector<FloatRow> rows;
  for (const Life& life : trace.lives)
    if (!life.rounds.empty())
      for (const FloatRow& row : life.rounds.back().end) rows.push_back(row);
  return rows;
}

}  // namespace

Trace run_scenario(const Scenario& scenario, const Parts& parts, const MakeStorage& storage) {
  World world(scenario, parts, storage ? storage(scenario) : std::make_unique<PerfectStorage>());
  return world.run(run_limit(scenario, parts));
}

Outcome simulate(const Scenario& scenario, const MakeStorage& storage) {
  const Parts parts = build(scenario).value();
  const Trace trace = run_scenario(scenario, parts, storage);
  Outcome outcome{
      judge(scenario, parts, trace),
      trace.hash,
      seconds(trace.end),
      trace.events,
      trace.story,
      static_cast<std::size_t>(std::ranges::count(trace.links, false, &LinkRecord::back)),
      static_cast<std::size_t>(std::ranges::count(trace.links, true, &LinkRecord::back)),
      static_cast<std::size_t>(std::ranges::count_if(
          trace.lives, [](const Life& life) { return life.joins && !life.rounds.empty(); }))};
  judge_again(scenario, parts, trace, run_scenario(scenario, parts, storage), outcome.verdict);
  return outcome;
}

void judge_again(const Scenario& scenario, const Parts& parts, const Trace& trace,
                 const Trace& again, Verdict& verdict) {
  const auto hold = [&](bool holds, const char* property, const std::string& sentence) {
    ++verdict.checked[property];
    if (!holds) verdict.violations.push_back(fmt::format("{}: {}", property, sentence));
  };
  hold(again.hash == trace.hash, "repeats",
       fmt::format("a second run gives the trace {:016x} instead of {:016x}", again.hash,
                   trace.hash));
  const bool everybody =
      trace.links.empty() && std::ranges::all_of(trace.lives, [](const Life& life) {
        return life.alive && life.finished;
      });
  if (parts.policy == Policy::sync && everybody && parts.algorithm->needs().rounds_end_together) {
    const Scenario plain = in_one_process(scenario);
    hold(final_rows(run_scenario(plain, parts)) == final_rows(trace), "bits",
         "the rows are other than those of the same network in one process");
  }
}

namespace {

/// Gives up peer n − 1, or process k and its faults, …: scenarios that are a little smaller, the
/// boldest first.
std::vector<Scenario> smaller(const Scenario& s) {
  std::vector<Scenario> tries;
  const auto change = [&](auto edit) {
    Scenario changed = s;
    edit(changed);
    tries.push_back(std::move(changed));
  };
  const std::size_t count = s.faults.size();
  for (std::size_t size = count; size > 0; size /= 2)
    for (std::size_t first = 0; first < count; first += size)
      change([&](Scenario& c) {
        const auto begin = c.faults.begin() + static_cast<std::ptrdiff_t>(first);
        c.faults.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(size, count - first)));
      });
  for (int peers = 2; peers < s.peers; ++peers)
    change([&](Scenario& c) {
      c.peers = peers;
      c.homes.resize(static_cast<std::size_t>(peers));
    });
  if (s.length > 1) change([](Scenario& c) { c.length = 1, c.chunk_values = 1; });
  if (s.length > 2) change([](Scenario& c) { c.length = 2, c.chunk_values = 1; });
  if (s.chunk_values < s.length) change([](Scenario& c) { c.chunk_values = c.length; });
  if (s.local_steps > 1) change([](Scenario& c) { c.local_steps = 1; });
  if (s.jitter_ms > 0) change([](Scenario& c) { c.jitter_ms = 0; });
  if (s.loss > 0) change([](Scenario& c) { c.loss = 0; });
  if (s.duplication > 0) change([](Scenario& c) { c.duplication = 0; });
  if (s.step_spread > 0) change([](Scenario& c) { c.step_spread = 0; });
  if (s.bandwidth_mbit_s > 0) change([](Scenario& c) { c.bandwidth_mbit_s = 0; });
  if (s.codec != "none") change([](Scenario& c) { c.codec = "none"; });
  if (s.algorithm != "consensus") change([](Scenario& c) { c.algorithm = "consensus"; });
  if (s.algorithm != "consensus" && s.algorithm != "dpsgd")
    change([](Scenario& c) { c.algorithm = "dpsgd"; });
  for (const char* kind : {"path", "ring"})
    if (s.topology != kind) change([&](Scenario& c) { c.topology = kind; });
  // Last: a run that is over just after its fault can hardly be made simpler.
  for (const int rounds : {s.rounds / 4, s.rounds / 2, s.rounds * 3 / 4, s.rounds - 1})
    if (rounds >= 1 && rounds < s.rounds) change([&](Scenario& c) { c.rounds = rounds; });
  return tries;
}

}  // namespace

Scenario shrink(Scenario scenario, const std::function<bool(const Scenario&)>& fails, int runs) {
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    for (const Scenario& candidate : smaller(scenario)) {
      if (!scenario_of(values_of(candidate)).ok()) continue;
      if (runs-- == 0) return scenario;
      if (!fails(candidate)) continue;
      scenario = candidate;
      shrunk = true;
      break;
    }
  }
  return scenario;
}

}  // namespace gossamer::gossip::sim
