// [sim] made a network: its tables read, and what does not fit found before a run starts.
#pragma once

#include "base/result.hpp"
#include "gossip/links/network_model.hpp"
#include "peer/config/config.hpp"

namespace gossamer::peer {

/// Errors name the key; those of a table (data, where it cannot be read or holds something else)
/// the file and the line too.
Result<gossip::NetworkModel> virtual_network(const Config& config, int servers);

}  // namespace gossamer::peer
