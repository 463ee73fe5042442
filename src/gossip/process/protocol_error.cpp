#include "gossip/process/protocol_error.hpp"

#include <fmt/format.h>

namespace gossamer::gossip {

Error protocol_error(const ChunkHeader& header, const std::string& what) {
  return {ErrorKind::lost_peer,
          fmt::format("peer {} broke the protocol towards peer {} (round {}, channel {}): {}",
                      header.from, header.to, header.round, header.channel, what)};
}

}  // namespace gossamer::gossip
