// The generator: expands a seed to a scenario, with faults of the families that the seed or the
// user chose.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/scenario/scenario.hpp"

namespace gossamer::simulator {

/// The families of faults that a seed draws from. `names`: names of fault_specs(); or "swarm"
/// alone, a random subset keyed by the seed; or "none" alone; or "open" alone, for small open runs.
/// The error (invalid) lists the names.
Result<std::vector<FaultKind>> fault_families(const std::vector<std::string>& names,
                                              std::uint64_t seed);
/// The seed's scenario, with faults of these families. The same on every machine.
Scenario draw_scenario(std::uint64_t seed, const std::vector<FaultKind>& all_families);

}  // namespace gossamer::simulator
