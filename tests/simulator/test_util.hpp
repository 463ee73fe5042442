// Words of the simulator's tests: networks that are small and clear, and what the oracle says of a
// run that was tampered with.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "simulator/world/simulation.hpp"

namespace gossamer::gossip::sim {

/// Six peers on a ring, each in its own process.
inline Scenario ring(const std::string& algorithm, std::vector<std::string> faults = {}) {
  Scenario scenario;
  scenario.peers = 6;
  scenario.homes = {0, 1, 2, 3, 4, 5};
  scenario.algorithm = algorithm;
  scenario.lazy = true;
  scenario.rounds = 80;
  scenario.chunk_values = 3;
  scenario.faults = std::move(faults);
  return scenario;
}

/// One that goes on for long enough to see links come back.
inline Scenario returning(const std::string& algorithm, std::vector<std::string> faults) {
  Scenario scenario = ring(algorithm, std::move(faults));
  scenario.rounds = 200;
  scenario.silence = 0.2;
  scenario.call_again = 0.02;
  return scenario;
}

/// What a run of the scenario is judged to be once `tamper` has been at its trace.
template <class Tamper>
Verdict judged(const Scenario& scenario, Tamper tamper) {
  const Parts parts = build(scenario).value();
  Trace trace = run_scenario(scenario, parts);
  tamper(trace);
  return judge(scenario, parts, trace);
}

inline bool violates(const Verdict& verdict, const std::string& property) {
  return std::ranges::any_of(verdict.violations, [&](const std::string& sentence) {
    return sentence.starts_with(property + ":");
  });
}

}  // namespace gossamer::gossip::sim
