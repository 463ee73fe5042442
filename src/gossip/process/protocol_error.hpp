// The error of a chunk that breaks the protocol.
#pragma once

#include <string>

#include "base/result.hpp"
#include "gossip/link.hpp"

namespace gossamer::gossip {

/// An error (lost_peer) that names the sender and the receiver of the chunk, its round and channel,
/// and `what` is wrong with it.
Error protocol_error(const ChunkHeader& header, const std::string& what);

}  // namespace gossamer::gossip
