// How a network that was stopped as a whole resumes: each process knows the rounds that it has
// saved, and all of them agree on one (peer/runtime/start_round_agreement.hpp).
#pragma once

#include <optional>

#include "simulator/world/trace.hpp"

namespace gossamer::simulator {

class World;

/// Completes the trace of a run that is over with what the disks hold. Returns how the network
/// resumes, if it was stopped.
std::optional<Resumption> complete(World& world);

}  // namespace gossamer::simulator
