// Small open runs in which peers arrive and leave within a few rounds: a family of scenarios of its
// own, so that those of all other seeds stay what they are.
#pragma once

#include <cstdint>

#include "simulator/scenario/scenario.hpp"

namespace gossamer::simulator {

/// The scenario of a seed: one to four peers, any of which may be a newcomer or leave, all of them
/// too. In some seeds there are faults, and in some all peers end that took part at the start.
Scenario draw_small_open(std::uint64_t seed);

}  // namespace gossamer::simulator
