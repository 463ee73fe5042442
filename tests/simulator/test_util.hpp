// The vocabulary of the simulator's tests: small scenarios, and the oracle's report on a trace that
// was tampered with.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "simulator/oracle/bounds.hpp"
#include "simulator/scenario/shrink.hpp"
#include "simulator/world/simulation.hpp"

namespace gossamer::simulator {

/// Six peers on a ring, each in its own process.
inline Scenario ring(const std::string& algorithm, std::vector<std::string> faults = {}) {
  Scenario scenario;
  scenario.peers = 6;
  scenario.placement = {0, 1, 2, 3, 4, 5};
  scenario.algorithm = algorithm;
  scenario.lazy = true;
  scenario.rounds = 80;
  scenario.chunk_values = 3;
  scenario.faults = std::move(faults);
  return scenario;
}

/// A ring that runs long enough for lost links to be restored.
inline Scenario restoring(const std::string& algorithm, std::vector<std::string> faults) {
  Scenario scenario = ring(algorithm, std::move(faults));
  scenario.rounds = 200;
  scenario.network.failure_timeout = 0.2;
  scenario.network.reconnect_delay = 0.02;
  return scenario;
}

/// The oracle's report on a run of the scenario, after `tamper` has changed its trace.
template <class Tamper>
CheckReport checked_after(const Scenario& scenario, Tamper tamper) {
  const Protocol protocol = build_protocol(scenario).value();
  Trace trace = run_scenario(scenario, protocol);
  tamper(trace);
  return check_trace(scenario, protocol, trace);
}

/// The same on the parts of a run of a network that is stopped as a whole and resumes.
template <class Tamper>
CheckReport checked_part_after(const Scenario& scenario, std::size_t part, Tamper tamper) {
  const Protocol protocol = build_protocol(scenario).value();
  std::vector<Trace> parts = run_parts(scenario, protocol);
  REQUIRE(part < parts.size());
  tamper(parts[part]);
  return check_trace(scenario, protocol, parts[part]);
}

inline bool violates(const CheckReport& report, const std::string& property) {
  return std::ranges::any_of(report.violations, [&](const std::string& sentence) {
    return sentence.starts_with(property + ":");
  });
}

}  // namespace gossamer::simulator
