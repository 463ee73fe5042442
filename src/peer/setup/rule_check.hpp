// Combinations of a mixing rule with other settings that cannot run. Internal to make_setup().
#pragma once

#include "base/result.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

/// setup.rule, which is of `kind`, against the algorithm, the codec, the weights and the graph of
/// the setup. Errors (invalid) name the key, the reason, and settings that would work.
Status check_rule(const Setup& setup, const gossip::RuleKind& kind);

/// The peer with the fewest in-neighbours, of those that have some: it limits the hostile
/// neighbours that a rule withstands on a graph (RuleKind::most_hostile).
struct FewestNeighbours {
  int peer = 0;
  int neighbours = 0;       ///< how many it has,
  gossip::Round round = 0;  ///< and the first round in which it has so few
};

/// Of a schedule without period, of its first rounds. A network without neighbours has 0 of each.
FewestNeighbours fewest_neighbours(const topology::MixingSchedule& schedule);

}  // namespace gossamer::peer
