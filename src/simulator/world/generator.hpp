// What a seed expands to: a scenario, with faults of the families that the seed, or its user,
// chose.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/world/scenario.hpp"

namespace gossamer::gossip::sim {

/// Families of faults that a seed draws from: names of fault_forms(); "swarm": each or not, as the
/// seed has it; "none".
Result<std::vector<FaultKind>> fault_families(const std::vector<std::string>& names,
                                              std::uint64_t seed);
/// A seed's scenario, with faults of these families.
Scenario draw_scenario(std::uint64_t seed, const std::vector<FaultKind>& families);

}  // namespace gossamer::gossip::sim
