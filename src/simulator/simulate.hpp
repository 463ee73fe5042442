// Many scenarios of the simulator, and what they come to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/storage/files.hpp"
#include "simulator/world/simulation.hpp"

namespace gossamer::peer {

struct SimulatedSeeds {
  std::uint64_t first = 0, last = 0;         ///< both included
  std::vector<std::string> faults{"swarm"};  ///< gossip::sim::fault_families
  int threads = 1;  ///< ≥ 1; seeds are shared out, and no result depends on it
};

struct FailedSeed {
  std::uint64_t seed = 0;
  gossip::sim::Outcome outcome;
};

struct SimulationReport {
  std::uint64_t seeds = 0, events = 0, with_losses = 0, with_returns = 0, joins = 0, one_sided = 0;
  double virtual_seconds = 0, wall_seconds = 0, most_drift = 0, most_rounding = 0;
  std::map<std::string, std::uint64_t> checked;  ///< by property: how often it was looked at
  std::string hash;                              ///< of all traces' hashes, in the order of seeds
  std::vector<FailedSeed> failed;                ///< by seed
};

/// gossip::sim::simulate, and with the scenario's seed, whatever its faults, what it takes for
/// granted: that connections, however they break, bring everything once and in order
/// (simulator/session/session_trial.hpp; the property `session`).
gossip::sim::Outcome simulate_scenario(const gossip::sim::Scenario& scenario,
                                       const gossip::sim::MakeStorage& storage);

/// The error (invalid) is of the families' names.
Result<SimulationReport> simulate_seeds(const SimulatedSeeds& seeds);

Json report_json(const SimulationReport& report);
/// For people, a line for each thing.
std::string report_text(const SimulationReport& report, const std::string& faults);
std::string outcome_text(const gossip::sim::Outcome& outcome);

/// A scenario as gossip::sim::to_text writes it. Errors: data of the file, invalid of what it says.
Result<gossip::sim::Scenario> read_scenario(const std::string& path);

}  // namespace gossamer::peer
