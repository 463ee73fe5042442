// The participants of an open run, as its peers recorded them.
#pragma once

#include "simulator/scenario/scenario.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::simulator {

/// What the peers of a trace knew.
struct EffectiveProtocol {
  /// The scenario's, with changes of participants: in each round those take part that any peer
  /// which began it takes for participants, and those that leave it out. Every check then takes the
  /// run for one with changes that were known from the start.
  Protocol protocol;
  bool apart = false;  ///< peers that were apart knew different participants in a round
};
EffectiveProtocol effective_protocol(const Scenario& scenario, const Trace& trace);

}  // namespace gossamer::simulator
