// How many incoming connections a process has refused, by reason.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace gossamer::net {

/// Connections that did not become part of a session, since the start.
struct RefusedConnections {
  std::uint64_t keys = 0;        ///< the key belongs to no member, or to another peer
  std::uint64_t handshakes = 0;  ///< no handshake: silence, noise, a crowd
  std::uint64_t hellos = 0;      ///< rejected for any other reason

  /// With the names that logs and metrics give them.
  std::array<std::pair<const char*, std::uint64_t>, 3> by_reason() const {
    return {{{"keys", keys}, {"handshakes", handshakes}, {"hellos", hellos}}};
  }
};

}  // namespace gossamer::net
