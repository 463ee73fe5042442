// A process's place in its network: what it has in common with all others, and its links to them.
#pragma once

#include <utility>
#include <vector>

#include "net/wire/hello.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

/// The run, the topology, the model and the configuration, as the hellos of this process say them.
net::Identity identity_of(const Setup& setup);

/// (hosted node, node of another process) that exchange rows, each pair once.
std::vector<std::pair<int, int>> pairs_of(const Setup& setup, const std::vector<int>& hosted);

}  // namespace gossamer::peer
