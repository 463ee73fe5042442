// The faults of a scenario, carried out on a world.
#pragma once

#include "simulator/scenario/scenario.hpp"

namespace gossamer::simulator {

class World;

/// Schedules what the fault does, and its end. Before the world's run.
void schedule_fault(World& world, const Fault& fault);

}  // namespace gossamer::simulator
