// The attack of a configuration, and combinations with other settings that cannot run.
#pragma once

#include "base/result.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

/// The attack that setup.config asks for, checked against its algorithm, codec and schedule. Errors
/// (invalid) name the key, the reason, and settings that would work.
Result<gossip::AttackPlan> plan_attack(const Setup& setup);

/// Whether the processes of a network can carry out the attack: a process has no rows of honest
/// peers elsewhere. Errors (invalid) name the kinds that need none.
Status check_network_attack(const Config& config);

/// Whether the run trains the hostile peers on flipped labels.
bool flips_labels(const Config& config);

/// Why theory says nothing about a run with an attack, as a sentence; empty without one.
std::string attack_refusal(const Config& config);

}  // namespace gossamer::peer
