// Runs the scenarios of many seeds, and reports what the oracle found.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/storage/files.hpp"
#include "simulator/world/simulation.hpp"

namespace gossamer::simulator {

struct SimulatedSeeds {
  std::uint64_t first = 0, last = 0;         ///< both included
  std::vector<std::string> faults{"swarm"};  ///< names for fault_families()
  int threads = 1;                           ///< ≥ 1; no result depends on it
};

struct FailedSeed {
  std::uint64_t seed = 0;
  Outcome outcome;
};

struct SimulationReport {
  std::uint64_t seeds = 0, events = 0, with_losses = 0, with_restorations = 0, joins = 0,
                one_sided = 0;
  double virtual_seconds = 0, wall_seconds = 0, most_drift = 0, most_rounding = 0;
  std::map<std::string, std::uint64_t> checked;  ///< by property: how often it was looked at
  std::string hash;                              ///< of all traces' hashes, in the order of seeds
  std::vector<FailedSeed> failed;                ///< by seed
};

/// simulate(), and two trials with the scenario's seed: of the assumption behind it that
/// connections, however they break, bring everything once and in order
/// (simulator/session/session_trial.hpp; the property `session`), and of replicas whose workers
/// join (simulator/replica/replica_trial.hpp; `replica`).
Outcome simulate_scenario(const Scenario& scenario, const MakeStorage& storage);

/// The error (invalid) names a family that does not exist.
Result<SimulationReport> simulate_seeds(const SimulatedSeeds& seeds);

peer::Json report_json(const SimulationReport& report);
/// For people.
std::string report_text(const SimulationReport& report, const std::string& faults);
std::string outcome_text(const Outcome& outcome);

/// Reads a scenario as to_text() writes it. Errors: data of the file, invalid of what it says.
Result<Scenario> read_scenario(const std::string& path);

}  // namespace gossamer::simulator
