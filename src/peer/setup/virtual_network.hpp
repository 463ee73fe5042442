// The simulated network that [sim] describes.
#pragma once

#include "base/result.hpp"
#include "gossip/links/network_model.hpp"
#include "peer/config/config.hpp"

namespace gossamer::peer {

/// Reads the tables and checks the settings. Errors (invalid) name the key; errors of a table (data
/// if it cannot be read or parsed) also name the file and the line.
Result<gossip::NetworkModel> make_network_model(const Config& config, int servers);

}  // namespace gossamer::peer
