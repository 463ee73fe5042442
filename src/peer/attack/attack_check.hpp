// The attack of a configuration, and combinations with other settings that cannot run.
#pragma once

#include "base/result.hpp"
#include "gossip/algorithm.hpp"
#include "gossip/attack.hpp"
#include "gossip/codec.hpp"
#include "gossip/rule.hpp"
#include "peer/config/config.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::peer {

/// What the messages of hostile peers must fit.
struct AttackedRun {
  const Config& config;
  const gossip::Algorithm& algorithm;
  const topology::MixingSchedule& schedule;
  const gossip::Codec& codec;
  const gossip::MixingRule& rule;
};

/// The attack that the configuration asks for, checked against the run. Errors (invalid) name the
/// key, the reason, and settings that would work.
Result<gossip::AttackPlan> plan_attack(const AttackedRun& run);

/// Whether the processes of a network can carry out the attack: a process has no rows of honest
/// peers elsewhere. Errors (invalid) name the kinds that need none.
Status check_network_attack(const Config& config);

/// Why theory says nothing about a run with an attack, as a sentence; empty without one.
std::string attack_refusal(const Config& config);

}  // namespace gossamer::peer
