// Reduces a scenario that fails to a smaller one that fails too.
#pragma once

#include <functional>

#include "simulator/scenario/scenario.hpp"

namespace gossamer::simulator {

/// A scenario with fewer faults, rounds and peers, and simpler links, for which `fails` still
/// holds. At most `runs` calls of `fails`.
Scenario shrink(Scenario scenario, const std::function<bool(const Scenario&)>& fails,
                int runs = 400);

}  // namespace gossamer::simulator
