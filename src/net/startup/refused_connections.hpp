// How many incoming connections a process has refused, by reason.
#pragma once

#include <cstdint>

namespace gossamer::net {

/// Connections that did not become part of a session, since the start.
struct RefusedConnections {
  std::uint64_t keys = 0;        ///< the key belongs to no member, or to another peer
  std::uint64_t handshakes = 0;  ///< no handshake: silence, noise, a crowd
  std::uint64_t hellos = 0;      ///< rejected for any other reason
};

}  // namespace gossamer::net
