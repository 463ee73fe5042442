// The hostile peers of a configuration that states how many they are (attack.fraction).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"

namespace gossamer::peer {

/// `fraction` · `peers` of 0 … peers − 1, rounded to a whole number, and at least one: drawn from
/// `seed`, ascending. `named`: those of attack.peers; if there are any, they have to be these, as
/// in the configuration that a log contains. 0 < fraction < 1. Errors (invalid) name the key.
Result<std::vector<int>> hostile_peers_of(double fraction, int peers, std::uint64_t seed,
                                          std::vector<int> named);

}  // namespace gossamer::peer
